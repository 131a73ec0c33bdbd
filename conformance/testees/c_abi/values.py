"""Values as the kit has them: what payloads mean, and what stands in a list."""

import json

BYTES, TEXT, JSON, BATCH = 0, 1, 2, 3
# A value of a list: its codec, and its payload. JSON of no bytes is absent.
ABSENT = (JSON, b"")


class Malformed(Exception):
    """A payload that is not what its codec says, by the name of the reason code."""


def text_of(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise Malformed("message.text") from None


def json_of(payload: bytes):
    """The value of a JSON text. Raises `Malformed` where it is none."""
    try:
        return json.loads(text_of(payload), parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Malformed("message.json") from None


def refuse(name: str):
    raise ValueError(name)


def to_json(value) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def from_command(value: dict) -> tuple[int, bytes]:
    """A value of `values` in a command."""
    if "text" in value:
        return TEXT, value["text"].encode()
    if "hex" in value:
        return value.get("codec", BYTES), bytes.fromhex(value["hex"])
    return (JSON, to_json(value["json"])) if "json" in value else ABSENT


def shown(value: tuple[int, bytes]) -> dict:
    """A value as a reply has it."""
    codec, payload = value
    if value == ABSENT:
        return {}
    if codec == TEXT:
        return {"json": payload.decode()}
    if codec == JSON:
        return {"json": json_of(payload)}
    return {"hex": payload.hex(), **({} if codec == BYTES else {"codec": codec})}


def plain(value: tuple[int, bytes]):
    """What JSON says of an argument: a text is a string, an absent one null."""
    codec, payload = value
    if value == ABSENT:
        return None
    return json_of(payload) if codec == JSON else payload.decode()


def decoded(item: dict) -> list[dict]:
    """A message as an application sees it: the elements of a batch one by one."""
    payload, head = item["payload"], {name: item[name] for name in ("kind", "codec", "tag")}
    match item["codec"]:
        case 1:
            return [{**head, "text": text_of(payload)}]
        case 2:
            return [{**head, "json": json_of(payload)}]
        case 3:
            elements = json_of(payload)
            if not isinstance(elements, list) or not elements:
                raise Malformed("message.json")
            return [{**head, "codec": JSON, "json": element} for element in elements]
    return [item]
