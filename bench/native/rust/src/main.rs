//! The driver of Millrace's rivals in Rust, with Millrace beside them in one program: rates depend
//! on how the reader checks, which only one program does in one way. See `bench/README.md`.

mod floor;
mod millrace;
mod payload;
mod peers;
mod protocol;
mod runs;

use peers::Peer;
use protocol::{Answer, Body, Request, Scenario};
use std::io::{BufRead, Write};

const PEERS: [&str; 6] = [
    "millrace-c",
    "millrace-c-lend",
    "rtrb",
    "crossbeam-channel",
    "iceoryx2",
    "floor-frame",
];

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let driver = serde_json::json!({"driver": {
        "name": "rust-native",
        "version": env!("CARGO_PKG_VERSION"),
        "place": "native",
        "peers": PEERS,
    }});
    writeln!(out, "{driver}")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        let request: Request = serde_json::from_str(&line).unwrap_or_else(|err| {
            eprintln!("Cannot read a request: {err}: {line}");
            std::process::exit(2);
        });
        let answer = Answer {
            id: request.id,
            body: perform(&request),
        };
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
        out.flush()?;
    }
    Ok(())
}

fn perform(request: &Request) -> Body {
    let scenario = &request.scenario;
    if scenario.format != "bytes" {
        return Body::Decline("to a native peer all messages are bytes".into());
    }
    if scenario.ends != "threads" {
        return Body::Decline("the ends of this driver are threads".into());
    }
    match request.peer.as_str() {
        "millrace-c" => sized::<millrace::Copying>(scenario),
        "millrace-c-lend" => sized::<millrace::Lending>(scenario),
        "rtrb" => sized::<peers::Rtrb>(scenario),
        "crossbeam-channel" => sized::<peers::Crossbeam>(scenario),
        "iceoryx2" => sized::<peers::Iceoryx>(scenario),
        "floor-frame" => sized::<floor::Frames>(scenario),
        _ => Body::Error("this driver has no such peer".into()),
    }
}

/// The rivals' queues hold values of one type, so each size is one that is compiled in.
fn sized<P: Peer<8> + Peer<64> + Peer<4096>>(scenario: &Scenario) -> Body {
    match scenario.size {
        8 => runs::run::<8, P>(scenario),
        64 => runs::run::<64, P>(scenario),
        4096 => runs::run::<4096, P>(scenario),
        _ => Body::Decline("only 8, 64 and 4096 bytes are compiled in".into()),
    }
}
