//! The Linux calls for a segment in a file: files with and without a name, sealed memory, and
//! locks that belong to an open file description. All calls share one small set of errors. It tells
//! a path that others may have tampered with apart from a lack of the machine.

const std = @import("std");
const linux = std.os.linux;
const assert = std.debug.assert;

pub const Handle = linux.fd_t;

pub const Error = error{
    /// The path leads to something that is not a file to trust [segment.file_own].
    SegmentFile,
    /// There is no such file, or a directory of the path is missing.
    FileNotFound,
    AccessDenied,
    NameTooLong,
    /// The file system, or the user's share of it, is full.
    NoSpaceLeft,
    /// There are too many open files, or there is no memory.
    SystemResources,
    Unexpected,
};

/// The attributes of a file that matter here.
pub const Stat = struct {
    device: [2]u32,
    inode: u64,
    user: u32,
    mode: u16,
    size: u64,

    /// [segment.file_own]
    pub fn trusted(stat: Stat) bool {
        if (stat.mode & linux.S.IFMT != linux.S.IFREG) return false;
        return stat.user == linux.geteuid() and stat.mode & 0o077 == 0;
    }

    pub fn same(a: Stat, b: Stat) bool {
        return a.inode == b.inode and std.mem.eql(u32, &a.device, &b.device);
    }

    fn of(directory: Handle, name: [*:0]const u8, flags: u32) Error!Stat {
        var raw: linux.Statx = undefined;
        const mask: linux.STATX = .BASIC_STATS;
        _ = try check(linux.statx(directory, name, flags, mask, &raw));
        return .{
            .device = .{ raw.dev_major, raw.dev_minor },
            .inode = raw.ino,
            .user = raw.uid,
            .mode = raw.mode,
            .size = raw.size,
        };
    }
};

pub fn statOf(file: Handle) Error!Stat {
    return .of(file, "", linux.AT.EMPTY_PATH);
}

/// A path, split so that all calls use the same directory, even if directories are renamed
/// meanwhile.
pub const Place = struct {
    directory: Handle,
    name: [*:0]const u8,
    /// Whether it is the path of a descriptor: a link that the kernel provides to what a process
    /// has open [segment.file_handed].
    handed: bool,

    pub fn init(path: [:0]const u8) Error!Place {
        const slash = std.mem.findScalarLast(u8, path, '/');
        const name_begins = if (slash) |index| index + 1 else 0;
        var parent: [linux.PATH_MAX]u8 = undefined;
        if (name_begins >= parent.len) return error.NameTooLong;
        @memcpy(parent[0..name_begins], path[0..name_begins]);
        parent[name_begins] = 0;
        const parent_path: [*:0]const u8 =
            if (name_begins == 0) "." else parent[0..name_begins :0].ptr;
        const flags: linux.O = .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true };
        const directory = try open(linux.AT.FDCWD, parent_path, flags);
        errdefer close(directory);
        // A path that ends in a slash names the directory.
        if (slash != null and name_begins == path.len) return error.SegmentFile;
        const name = path[name_begins..];
        return .{ .directory = directory, .name = name.ptr, .handed = isHanded(path) };
    }

    pub fn deinit(place: Place) void {
        close(place.directory);
    }

    pub fn stat(place: Place) Error!Stat {
        const follow: u32 = if (place.handed) 0 else linux.AT.SYMLINK_NOFOLLOW;
        return .of(place.directory, place.name, follow);
    }

    /// Opens the file at this place, and refuses a file that others could have put there.
    pub fn openTrusted(place: Place) Error!Handle {
        // The check comes before opening, because opening a device or a FIFO can have effects.
        if (!(try place.stat()).trusted()) return error.SegmentFile;
        const file = try open(place.directory, place.name, .{
            .ACCMODE = .RDWR,
            .NOFOLLOW = !place.handed,
            .NONBLOCK = true,
            .NOCTTY = true,
            .CLOEXEC = true,
        });
        errdefer close(file);
        // Another file may have taken its place between the check and `open`.
        if (!(try statOf(file)).trusted()) return error.SegmentFile;
        if (place.handed and !isSealed(file)) return error.SegmentFile;
        return file;
    }

    pub fn remove(place: Place) Error!void {
        _ = try check(linux.unlinkat(place.directory, place.name, 0));
    }
};

/// Whether a path is of the form `/proc/PID/fd/N`, where PID may be `self`.
fn isHanded(path: []const u8) bool {
    var parts = std.mem.splitScalar(u8, path, '/');
    const root = parts.first();
    const proc = parts.next() orelse return false;
    const process = parts.next() orelse return false;
    const kind = parts.next() orelse return false;
    if (root.len > 0 or !std.mem.eql(u8, proc, "proc")) return false;
    if (!isNumber(process) and !std.mem.eql(u8, process, "self")) return false;
    return std.mem.eql(u8, kind, "fd") and isNumber(parts.rest());
}

fn isNumber(text: []const u8) bool {
    for (text) |byte| if (!std.ascii.isDigit(byte)) return false;
    return text.len > 0;
}

/// The size of the longest path that `handedPath` returns, with its final zero.
pub const handed_path_size = "/proc/".len + 10 + "/fd/".len + 10 + 1;

/// Returns the path by which other processes of the same user open this descriptor.
pub fn handedPath(file: Handle, storage: *[handed_path_size]u8) [:0]const u8 {
    const values = .{ linux.getpid(), file };
    return std.mem.printSentinel(storage, "/proc/{}/fd/{}", values, 0) catch unreachable;
}

/// Makes memory of this size that has no name, reserved and sealed: nobody can make it shorter
/// [segment.file_sealed].
pub fn createSealed(size: u64) Error!Handle {
    const flags = linux.MFD.CLOEXEC | linux.MFD.ALLOW_SEALING;
    const file: Handle = @intCast(try check(linux.memfd_create("millrace", flags)));
    errdefer close(file);
    _ = try check(linux.fchmod(file, Unnamed.mode));
    try reserve(file, size);
    const seals = linux.F.SEAL_SHRINK | linux.F.SEAL_GROW | linux.F.SEAL_SEAL;
    _ = try check(linux.fcntl(file, linux.F.ADD_SEALS, seals));
    return file;
}

/// Whether nobody can make the file shorter any more. Always false for a file with a name.
pub fn isSealed(file: Handle) bool {
    const seals = linux.fcntl(file, linux.F.GET_SEALS, 0);
    return linux.errno(seals) == .SUCCESS and seals & linux.F.SEAL_SHRINK != 0;
}

/// A file that nobody else can reach. It has no name, so nothing is left of it if the process that
/// made it dies. If the file system does not support that, it has a secret name.
pub const Unnamed = struct {
    handle: Handle,
    secret: ?[secret_size:0]u8,

    const prefix = ".millrace-";
    const secret_size = prefix.len + 16;
    const mode = 0o600;

    pub fn init(place: Place) Error!Unnamed {
        if (initNameless(place)) |handle| return .{ .handle = handle, .secret = null };
        return initSecret(place);
    }

    pub fn initSecret(place: Place) Error!Unnamed {
        var number: [8]u8 = undefined;
        // For so few bytes, once the machine has started, this neither waits nor returns fewer.
        if (try check(linux.getrandom(&number, number.len, 0)) != number.len) {
            return error.Unexpected;
        }
        var secret: [secret_size:0]u8 = undefined;
        @memcpy(&secret, prefix ++ std.fmt.bytesToHex(number, .lower));
        secret[secret_size] = 0;
        const handle = try open(place.directory, &secret, .{
            .ACCMODE = .RDWR,
            .CREAT = true,
            .EXCL = true,
            .NOFOLLOW = true,
            .CLOEXEC = true,
        });
        return .{ .handle = handle, .secret = secret };
    }

    fn initNameless(place: Place) ?Handle {
        const flags: linux.O = .{
            .ACCMODE = .RDWR,
            .TMPFILE = true,
            .DIRECTORY = true,
            .CLOEXEC = true,
        };
        const file = open(place.directory, ".", flags) catch return null;
        // Without /proc, the file could not be given a name later.
        var buffer: [path_size]u8 = undefined;
        const found = Stat.of(linux.AT.FDCWD, pathOf(file, &buffer), 0) catch null;
        const own = statOf(file) catch null;
        if (found != null and own != null and found.?.same(own.?)) return file;
        close(file);
        return null;
    }

    /// Gives the file its name. Returns false, and changes nothing, if another file has that name.
    pub fn link(unnamed: *const Unnamed, place: Place) Error!bool {
        var buffer: [path_size]u8 = undefined;
        const result = if (unnamed.secret) |*secret|
            linux.linkat(place.directory, secret, place.directory, place.name, 0)
        else
            linux.linkat(
                linux.AT.FDCWD,
                pathOf(unnamed.handle, &buffer),
                place.directory,
                place.name,
                linux.AT.SYMLINK_FOLLOW,
            );
        if (linux.errno(result) == .EXIST) return false;
        _ = try check(result);
        unnamed.removeSecret(place);
        return true;
    }

    pub fn removeSecret(unnamed: *const Unnamed, place: Place) void {
        const secret = &(unnamed.secret orelse return);
        _ = linux.unlinkat(place.directory, secret, 0);
    }

    const path_size = "/proc/self/fd/".len + 11;

    fn pathOf(file: Handle, buffer: *[path_size]u8) [*:0]const u8 {
        return std.mem.printSentinel(buffer, "/proc/self/fd/{}", .{file}, 0) catch unreachable;
    }
};

pub const Range = struct {
    offset: u64,
    /// 0 means up to the end of the file, however long it grows.
    size: u64,

    fn flock(range: Range, kind: i16) linux.Flock {
        var result = std.mem.zeroes(linux.Flock);
        result.type = kind;
        result.whence = linux.SEEK.SET;
        result.start = @intCast(range.offset);
        result.len = @intCast(range.size);
        return result;
    }
};

/// Takes an exclusive lock for this open file description. Returns false if another holds one.
pub fn lock(file: Handle, range: Range) Error!bool {
    const request = range.flock(linux.F.WRLCK);
    const result = linux.fcntl(file, linux.F.OFD_SETLK, @intFromPtr(&request));
    switch (linux.errno(result)) {
        .AGAIN, .ACCES => return false,
        else => _ = try check(result),
    }
    return true;
}

pub fn unlock(file: Handle, range: Range) void {
    const request = range.flock(linux.F.UNLCK);
    _ = linux.fcntl(file, linux.F.OFD_SETLK, @intFromPtr(&request));
}

/// Whether another open file description holds a lock in the range.
pub fn locked(file: Handle, range: Range) Error!bool {
    var request = range.flock(linux.F.WRLCK);
    _ = try check(linux.fcntl(file, linux.F.OFD_GETLK, @intFromPtr(&request)));
    return request.type != linux.F.UNLCK;
}

/// Allocates disk space or memory for the first bytes of the file. Otherwise a store into a mapped
/// hole would terminate the process if the file system is full.
pub fn reserve(file: Handle, size: u64) Error!void {
    while (true) {
        const result = linux.fallocate(file, 0, 0, @intCast(size));
        switch (linux.errno(result)) {
            .INTR => continue,
            // The file system cannot allocate in advance: the file only gets its size, and holes
            // stay.
            .OPNOTSUPP, .NOSYS => {
                if ((try statOf(file)).size >= size) return;
                _ = try check(linux.ftruncate(file, @intCast(size)));
                return;
            },
            else => {
                _ = try check(result);
                return;
            },
        }
    }
}

pub fn read(file: Handle, bytes: []u8) Error!usize {
    return check(linux.pread(file, bytes.ptr, bytes.len, 0));
}

pub fn map(file: Handle, size: usize) Error![]align(std.heap.page_size_min) u8 {
    const prot: linux.PROT = .{ .READ = true, .WRITE = true };
    const result = try check(linux.mmap(null, size, prot, .{ .TYPE = .SHARED }, file, 0));
    const bytes: [*]align(std.heap.page_size_min) u8 = @ptrFromInt(result);
    return bytes[0..size];
}

pub fn unmap(memory: []const u8) void {
    const result = linux.munmap(memory.ptr, memory.len);
    assert(linux.errno(result) == .SUCCESS);
}

pub fn close(file: Handle) void {
    _ = linux.close(file);
}

fn open(directory: Handle, path: [*:0]const u8, flags: linux.O) Error!Handle {
    while (true) {
        const result = linux.openat(directory, path, flags, Unnamed.mode);
        if (linux.errno(result) == .INTR) continue;
        return @intCast(try check(result));
    }
}

fn check(result: usize) Error!usize {
    return switch (linux.errno(result)) {
        .SUCCESS => result,
        .NOENT, .NOTDIR => error.FileNotFound,
        .ACCES, .PERM, .ROFS => error.AccessDenied,
        .NAMETOOLONG => error.NameTooLong,
        .NOSPC, .DQUOT, .FBIG => error.NoSpaceLeft,
        .MFILE, .NFILE, .NOMEM, .NOLCK => error.SystemResources,
        .LOOP, .ISDIR, .NXIO, .NODEV => error.SegmentFile,
        else => error.Unexpected,
    };
}
