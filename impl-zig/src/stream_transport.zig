//! What carries the bytes of a stream: two ordered streams of bytes, one each way
//! [spec/stream.md].
//!
//! Invariant: nothing here blocks but `wait`, which returns when its time is over.

/// How a stream reaches its transport. `StreamDescriptors` gives one for sockets and pipes of the
/// system; whoever has another gives five functions.
///
/// Thread safety: no two of them are called at once, but for `wait`, which only the thread of the
/// port calls, while another may close the port.
pub const Transport = struct {
    context: *anyopaque,
    functions: *const Functions,

    /// What whoever carries the bytes does; nothing of it waits, but for `wait`.
    pub const Functions = struct {
        /// Takes as many bytes as there is room for at once, of these pieces one behind the other,
        /// and returns how many; 0 where it takes none now.
        write: *const fn (context: *anyopaque, pieces: []const []const u8) error{Broken}!usize,
        /// Moves bytes that have arrived to `target`, and returns how many; 0 where none are there
        /// now, null where the peer's byte stream has ended.
        read: *const fn (context: *anyopaque, target: []u8) error{Broken}!?usize,
        /// Ends the own byte stream, and leaves the other one.
        end: *const fn (context: *anyopaque) void,
        /// Waits until there is something to read, or room to write, as asked, and at most so long.
        /// May return early for no reason.
        wait: *const fn (context: *anyopaque, wish: Wish, limit_ns: u64) void,
        /// Gives everything up.
        close: *const fn (context: *anyopaque) void,
    };

    /// What to wait for.
    pub const Wish = struct {
        read: bool,
        write: bool,
    };

    /// The most pieces of one `write`.
    pub const piece_count_max = 3;

    /// Calls `Functions.write`.
    pub fn write(transport: Transport, pieces: []const []const u8) error{Broken}!usize {
        return transport.functions.write(transport.context, pieces);
    }

    /// Calls `Functions.read`.
    pub fn read(transport: Transport, target: []u8) error{Broken}!?usize {
        return transport.functions.read(transport.context, target);
    }

    /// Calls `Functions.end`.
    pub fn end(transport: Transport) void {
        transport.functions.end(transport.context);
    }

    /// Calls `Functions.wait`.
    pub fn wait(transport: Transport, wish: Wish, limit_ns: u64) void {
        transport.functions.wait(transport.context, wish, limit_ns);
    }

    /// Calls `Functions.close`.
    pub fn close(transport: Transport) void {
        transport.functions.close(transport.context);
    }
};
