//! Millrace: messages between threads, runtimes and processes through shared memory.
//!
//! The specification is in `spec/`; each file here implements the chapter of the same name. Only
//! calls and pools allocate memory. Nothing needs libc, and every structure lies where the caller
//! puts it.
//!
//! `Port` exchanges messages in both directions, and `Calls` calls functions of the peer over a
//! port. `SegmentFile` shares a segment between processes. `Select` waits for several pipes.
//! `Writer` and `Reader` are one direction each. `Fanout` gives every message to many readers, and
//! `Pool` has many threads work for one. The guide is `README.md`.

/// Every offset, size, flag and code of the layout; generated from `spec/layout.json`.
pub const layout = @import("layout.zig");
/// The reason for a failure: a code of the specification, as it stands in shared memory.
pub const Reason = layout.Reason;
pub const reasonOf = @import("reason.zig").reasonOf;

/// The machine that the library runs on: clock, sleep and wake. `Host.native` is the default.
pub const Host = @import("host.zig").Host;
pub const host = @import("host.zig");
pub const Timeout = @import("host.zig").Timeout;

pub const Segment = @import("segment.zig").Segment;
pub const SegmentError = @import("segment.zig").Error;
pub const Memory = @import("segment.zig").Memory;
pub const Geometry = @import("segment.zig").Geometry;
pub const Channel = @import("segment.zig").Channel;
pub const Owner = @import("segment.zig").Owner;
pub const segmentSize = @import("segment.zig").sizeOf;
pub const SegmentFile = @import("segment_file.zig").SegmentFile;
pub const SegmentFileError = @import("segment_file.zig").Error;

pub const Endpoint = @import("wait.zig").Endpoint;
pub const Stats = @import("wait.zig").Stats;

pub const MailboxWriter = @import("mailbox.zig").MailboxWriter;
pub const MailboxReader = @import("mailbox.zig").MailboxReader;
pub const MailboxError = @import("mailbox.zig").MailboxError;
pub const MailboxWriteError = @import("mailbox.zig").MailboxWriteError;
pub const MailboxReadError = @import("mailbox.zig").MailboxReadError;

pub const Codec = @import("codec.zig").Codec;
pub const codec = @import("codec.zig");
pub const json = @import("codec_json.zig");

pub const Writer = @import("pipe.zig").Writer;
pub const Reader = @import("pipe.zig").Reader;
pub const vacate = @import("pipe.zig").vacate;
pub const Envelope = @import("pipe.zig").Envelope;
pub const Message = @import("pipe.zig").Message;
pub const Lent = @import("pipe.zig").Lent;
pub const PipeError = @import("pipe.zig").PipeError;
pub const WriteError = @import("pipe.zig").WriteError;
pub const ReadError = @import("pipe.zig").ReadError;

pub const Fanout = @import("fanout.zig").Fanout;

pub const Port = @import("port.zig").Port;
pub const Rings = @import("port.zig").Rings;
pub const Select = @import("select.zig").Select;

pub const PropertyWriter = @import("property.zig").PropertyWriter;
pub const PropertyReader = @import("property.zig").PropertyReader;
pub const property = @import("property.zig");

pub const Stream = @import("stream.zig").Stream;
pub const StreamDescriptors = @import("stream_descriptors.zig").StreamDescriptors;
pub const Transport = @import("stream_transport.zig").Transport;

pub const Calls = @import("call.zig").Calls;
pub const Call = @import("call_own.zig").Call;
pub const CallError = @import("call_error.zig").CallError;
pub const Serving = @import("call_serving.zig").Serving;
pub const Methods = @import("call_typed.zig").Methods;
pub const Stack = @import("call.zig").Stack;
pub const CancelToken = @import("call_token.zig").CancelToken;
pub const Items = @import("call_own.zig").Items;
pub const Owned = @import("call_own.zig").Owned;
pub const Returned = @import("call_own.zig").Returned;
pub const Bytes = @import("call_typed.zig").Bytes;
pub const Value = @import("call_values.zig").Value;
pub const values = @import("call_values.zig");

pub const Meter = @import("meter.zig").Meter;
pub const meter = @import("meter.zig");

pub const Pool = @import("pool.zig").Pool;
pub const pool = @import("pool.zig");

pub const Sha1 = @import("digest.zig").Sha1;
pub const Sha256 = @import("digest.zig").Sha256;

test {
    _ = @import("segment.zig");
    _ = @import("wait.zig");
    _ = @import("frame.zig");
    _ = @import("ring.zig");
    _ = @import("mailbox.zig");
    _ = @import("codec.zig");
    _ = @import("codec_json.zig");
    _ = @import("pipe.zig");
    _ = @import("fanout.zig");
    _ = @import("port.zig");
    _ = @import("select.zig");
    _ = @import("property.zig");
    _ = @import("stream.zig");
    _ = @import("call.zig");
    _ = @import("meter.zig");
    _ = @import("pool.zig");
    _ = @import("digest.zig");
    if (@import("test_options").emulator == null) _ = @import("death_test.zig");
    _ = @import("hostile_test.zig");
    _ = @import("edge_test.zig");
    _ = @import("race_test.zig");
}
