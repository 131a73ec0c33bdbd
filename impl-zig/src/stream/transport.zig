//! The transport of a stream: two ordered byte streams, one each way [spec/stream.md].
//!
//! Invariant: nothing here blocks except `wait`, which returns when its time is over.

/// The interface of a stream to its transport. `StreamDescriptors` has a transport for sockets and
/// pipes of the system; any other one has to provide five functions.
///
/// Thread safety: no two functions are called at the same time, except that the thread of the port
/// may be in `wait` while another thread closes the port.
pub const Transport = struct {
    context: *anyopaque,
    functions: *const Functions,

    /// The functions that a transport provides. Only `wait` may wait.
    pub const Functions = struct {
        /// Takes as many bytes of these pieces, one after the other, as there is room for now.
        /// Returns how many it took; 0 if it cannot take any now.
        write: *const fn (context: *anyopaque, pieces: []const []const u8) error{Broken}!usize,
        /// Moves bytes that have arrived to `target`. Returns how many; 0 if there are none now,
        /// null if the peer's byte stream has ended.
        read: *const fn (context: *anyopaque, target: []u8) error{Broken}!?usize,
        /// Ends the outgoing byte stream. The incoming one goes on.
        end: *const fn (context: *anyopaque) void,
        /// Waits until there is something to read, or room to write, as `wish` says, for at most
        /// `limit_ns`. May return early for no reason.
        wait: *const fn (context: *anyopaque, wish: Wish, limit_ns: u64) void,
        /// Closes the transport.
        close: *const fn (context: *anyopaque) void,
    };

    /// What to wait for.
    pub const Wish = struct {
        read: bool,
        write: bool,
    };

    /// The most pieces that one `write` gets.
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
