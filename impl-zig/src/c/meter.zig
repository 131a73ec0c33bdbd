//! Meters for C: they count and time what a port does [spec/meter.md]. `millrace_meter.h` says what
//! each call promises.

const std = @import("std");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const host = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const Bytes = @import("../ring/side.zig").Bytes;
const Deadline = host.Deadline;
const Meter = @import("../meter/meter.zig").Meter;
const Port = @import("../port/port.zig").Port;
const Snapshot = @import("../meter/meter.zig").Snapshot;
const Status = arguments.Status;
const Timeout = host.Timeout;

/// The meter of a port, by the directions that the port has. The port calls it in place of its own
/// ends.
pub const Metered = union(enum) {
    port: Meter(Port),
    writer: Meter(pipe.Writer),
    reader: Meter(pipe.Reader),

    pub fn write(
        metered: *Metered,
        payload: []const u8,
        envelope: pipe.Envelope,
        timeout: Timeout,
    ) pipe.WriteError!void {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| return meter.write(payload, envelope, timeout),
        }
    }

    pub fn writeMany(
        metered: *Metered,
        payloads: []const []const u8,
        envelope: pipe.Envelope,
        deadline: *Deadline,
    ) pipe.WriteError!usize {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| return meter.writeManyWith(payloads, envelope, deadline),
        }
    }

    pub fn claim(metered: *Metered, size: u32, timeout: Timeout) pipe.WriteError!Bytes {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| return meter.claim(size, timeout),
        }
    }

    /// Finishes the message in the claimed place, and publishes it.
    pub fn publish(metered: *Metered, size: u32, envelope: pipe.Envelope) void {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| {
                meter.finish(size, envelope);
                meter.publish();
            },
        }
    }

    pub fn read(metered: *Metered, storage: []u8, timeout: Timeout) pipe.ReadError!?pipe.Message {
        switch (metered.*) {
            .writer => unreachable,
            inline else => |*meter| return meter.read(storage, timeout),
        }
    }

    pub fn peek(metered: *Metered, timeout: Timeout) pipe.ReadError!?pipe.Lent {
        switch (metered.*) {
            .writer => unreachable,
            inline else => |*meter| return meter.peek(timeout),
        }
    }

    fn snapshot(metered: *Metered) Snapshot {
        switch (metered.*) {
            inline else => |*meter| return meter.snapshot(),
        }
    }
};

const Body = struct {
    metered: Metered,
    port: *c_port.Object,
};

const Object = arguments.Object(Body, .meter);

pub export fn millrace_meter_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_meter_attach(meter: ?*anyopaque, port: ?*anyopaque) Status {
    const object = Object.blank(meter) orelse return arguments.invalid;
    const measured = c_port.Object.known(port) orelse return arguments.invalid;
    if (!measured.body.takeMeter(&object.body.metered)) return arguments.invalid;
    object.body.port = measured;
    object.seal();
    return arguments.done;
}

pub export fn millrace_meter_done(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    switch (object.body.metered) {
        .writer => return arguments.invalid,
        inline else => |*known| known.done(),
    }
    return arguments.done;
}

pub export fn millrace_meter_next_value(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    switch (object.body.metered) {
        .writer => return arguments.invalid,
        inline else => |*known| known.nextValue(),
    }
    return arguments.done;
}

pub export fn millrace_meter_reset(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    switch (object.body.metered) {
        inline else => |*known| known.reset(),
    }
    return arguments.done;
}

/// `MILLRACE_METER_REPORT_SIZE`, which includes the final zero.
const report_size = 4096;

pub export fn millrace_meter_report(
    meter: ?*anyopaque,
    storage: ?*anyopaque,
    capacity: usize,
    size: ?*anyopaque,
) Status {
    const result = arguments.resultAt(usize, size) orelse return arguments.invalid;
    result.* = 0;
    const object = Object.known(meter) orelse return arguments.invalid;
    const place = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    if (place.len < report_size) return arguments.invalid;
    var json: std.Io.Writer = .fixed(place[0 .. report_size - 1]);
    // The storage suffices for the largest report [meter.report].
    object.body.metered.snapshot().writeJson(&json) catch unreachable;
    result.* = json.end;
    place[json.end] = 0;
    return arguments.done;
}

pub export fn millrace_meter_leave(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    object.body.port.body.dropMeter();
    object.forget();
    return arguments.done;
}
