//! Millrace: messages between threads, runtimes and processes through shared memory.
//!
//! The specification is in `spec/`; each folder here implements the chapter of the same name. Only
//! calls and pools allocate memory. Nothing needs libc, and every structure lies where the caller
//! puts it.
//!
//! `Port` exchanges messages in both directions, and `Calls` calls functions of the peer over a
//! port. `SegmentFile` shares a segment between processes. `Select` waits for several pipes.
//! `Writer` and `Reader` are one direction each. `Fanout` gives every message to many readers, and
//! `Pool` has many threads work for one. The guide is `README.md`.

/// Every offset, size, flag and code of the layout; generated from `spec/layout.json`.
pub const layout = @import("memory/layout.zig");
/// The reason for a failure: a code of the specification, as it stands in shared memory.
pub const Reason = layout.Reason;
pub const reasonOf = @import("error.zig").reasonOf;

/// The machine that the library runs on: clock, sleep and wake. `Host.native` is the default.
pub const Host = @import("wait/mechanism.zig").Host;
pub const host = @import("wait/mechanism.zig");
pub const Timeout = @import("wait/mechanism.zig").Timeout;

pub const Segment = @import("memory/segment.zig").Segment;
pub const SegmentError = @import("memory/segment.zig").Error;
pub const Memory = @import("memory/segment.zig").Memory;
pub const Geometry = @import("memory/segment.zig").Geometry;
pub const Channel = @import("memory/segment.zig").Channel;
pub const Owner = @import("memory/segment.zig").Owner;
pub const segmentSize = @import("memory/segment.zig").sizeOf;
pub const SegmentFile = @import("host/segment_file.zig").SegmentFile;
pub const SegmentFileError = @import("host/segment_file.zig").Error;

pub const Endpoint = @import("wait/endpoint.zig").Endpoint;
pub const Stats = @import("wait/endpoint.zig").Stats;

pub const MailboxWriter = @import("mailbox/mailbox.zig").MailboxWriter;
pub const MailboxReader = @import("mailbox/mailbox.zig").MailboxReader;
pub const MailboxError = @import("mailbox/side.zig").MailboxError;
pub const MailboxWriteError = @import("mailbox/side.zig").MailboxWriteError;
pub const MailboxReadError = @import("mailbox/side.zig").MailboxReadError;

pub const Codec = @import("codec/codec.zig").Codec;
pub const codec = @import("codec/codec.zig");
pub const json = @import("codec/json.zig");

pub const Writer = @import("pipe/ends.zig").Writer;
pub const Reader = @import("pipe/ends.zig").Reader;
pub const vacate = @import("more/revive.zig").vacate;
pub const Envelope = @import("pipe/ends.zig").Envelope;
pub const Message = @import("pipe/ends.zig").Message;
pub const Lent = @import("pipe/ends.zig").Lent;
pub const PipeError = @import("pipe/ends.zig").PipeError;
pub const WriteError = @import("pipe/ends.zig").WriteError;
pub const ReadError = @import("pipe/ends.zig").ReadError;

pub const Fanout = @import("fanout/fanout.zig").Fanout;

pub const Port = @import("port/port.zig").Port;
pub const Rings = @import("port/port.zig").Rings;
pub const Select = @import("more/select.zig").Select;

pub const PropertyWriter = @import("property/property.zig").PropertyWriter;
pub const PropertyReader = @import("property/property.zig").PropertyReader;
pub const property = @import("property/property.zig");

pub const Stream = @import("stream/stream.zig").Stream;
pub const StreamDescriptors = @import("stream/transport.zig").StreamDescriptors;
pub const Transport = @import("stream/transport.zig").Transport;

pub const Calls = @import("call/call.zig").Calls;
pub const Call = @import("call/caller.zig").Call;
pub const CallError = @import("call/error.zig").CallError;
pub const Serving = @import("call/callee.zig").Serving;
pub const Methods = @import("call/callee.zig").Methods;
pub const Stack = @import("call/call.zig").Stack;
pub const CancelToken = @import("call/caller.zig").CancelToken;
pub const Items = @import("call/caller.zig").Items;
pub const Owned = @import("call/caller.zig").Owned;
pub const Returned = @import("call/caller.zig").Returned;
pub const Bytes = @import("call/callee.zig").Bytes;
pub const Value = @import("call/values.zig").Value;
pub const values = @import("call/values.zig");

pub const Meter = @import("meter/meter.zig").Meter;
pub const meter = @import("meter/meter.zig");

pub const Pool = @import("pool/pool.zig").Pool;
pub const pool = @import("pool/pool.zig");

pub const Sha1 = @import("digest/digest.zig").Sha1;
pub const Sha256 = @import("digest/digest.zig").Sha256;

test {
    _ = @import("memory/segment.zig");
    _ = @import("wait/endpoint.zig");
    _ = @import("ring/frame.zig");
    _ = @import("ring/side.zig");
    _ = @import("mailbox/mailbox.zig");
    _ = @import("codec/codec.zig");
    _ = @import("codec/json.zig");
    _ = @import("pipe/ends.zig");
    _ = @import("more/revive.zig");
    _ = @import("fanout/fanout.zig");
    _ = @import("port/port.zig");
    _ = @import("more/select.zig");
    _ = @import("property/property.zig");
    _ = @import("stream/stream.zig");
    _ = @import("call/call.zig");
    _ = @import("meter/meter.zig");
    _ = @import("pool/pool.zig");
    _ = @import("digest/digest.zig");
    if (@import("test_options").emulator == null) _ = @import("testing/death_test.zig");
    _ = @import("testing/hostile_test.zig");
    _ = @import("testing/edge_test.zig");
    _ = @import("testing/race_test.zig");
}
