//! What the addon uses of the Node-API, version 8: every function is in every Node from 12.22 on,
//! and is found in the process that loads the addon.

pub const Env = *opaque {};
pub const Value = *opaque {};
pub const CallbackInfo = *opaque {};
pub const Deferred = *opaque {};
pub const ThreadsafeFunction = *opaque {};

pub const version = 8;

/// `napi_status`. What is not named is an error like any other.
pub const Status = enum(c_int) {
    ok = 0,
    closing = 16,
    no_external_buffers_allowed = 22,
    _,
};

pub const Callback = *const fn (Env, CallbackInfo) callconv(.c) ?Value;
pub const Finalize = *const fn (Env, ?*anyopaque, ?*anyopaque) callconv(.c) void;
pub const CleanupHook = *const fn (?*anyopaque) callconv(.c) void;
pub const CallJs = *const fn (?Env, ?Value, ?*anyopaque, ?*anyopaque) callconv(.c) void;

pub const ReleaseMode = enum(c_int) { release, abort };
pub const CallMode = enum(c_int) { nonblocking, blocking };

/// Says which addon has made an external.
pub const TypeTag = extern struct { lower: u64, upper: u64 };

pub extern fn napi_get_cb_info(
    env: Env,
    info: CallbackInfo,
    argc: *usize,
    argv: [*]Value,
    this: ?*Value,
    data: *?*anyopaque,
) Status;

pub extern fn napi_get_value_double(env: Env, value: Value, result: *f64) Status;
pub extern fn napi_get_value_bool(env: Env, value: Value, result: *bool) Status;
pub extern fn napi_get_value_string_utf8(
    env: Env,
    value: Value,
    bytes: ?[*]u8,
    size: usize,
    result: *usize,
) Status;
pub extern fn napi_get_value_external(env: Env, value: Value, result: *?*anyopaque) Status;
pub extern fn napi_type_tag_object(env: Env, value: Value, tag: *const TypeTag) Status;
pub extern fn napi_check_object_type_tag(
    env: Env,
    value: Value,
    tag: *const TypeTag,
    result: *bool,
) Status;

pub extern fn napi_get_undefined(env: Env, result: *Value) Status;
pub extern fn napi_get_boolean(env: Env, value: bool, result: *Value) Status;
pub extern fn napi_create_double(env: Env, value: f64, result: *Value) Status;
pub extern fn napi_create_string_utf8(
    env: Env,
    bytes: [*]const u8,
    size: usize,
    result: *Value,
) Status;
pub extern fn napi_create_object(env: Env, result: *Value) Status;
pub extern fn napi_set_named_property(
    env: Env,
    object: Value,
    name: [*:0]const u8,
    value: Value,
) Status;
pub extern fn napi_create_function(
    env: Env,
    name: [*]const u8,
    size: usize,
    callback: Callback,
    data: ?*anyopaque,
    result: *Value,
) Status;
pub extern fn napi_create_arraybuffer(
    env: Env,
    size: usize,
    bytes: *?[*]u8,
    result: *Value,
) Status;
pub extern fn napi_create_external(
    env: Env,
    data: ?*anyopaque,
    finalize: ?Finalize,
    hint: ?*anyopaque,
    result: *Value,
) Status;
pub extern fn napi_create_external_arraybuffer(
    env: Env,
    bytes: *anyopaque,
    size: usize,
    finalize: ?Finalize,
    hint: ?*anyopaque,
    result: *Value,
) Status;

pub extern fn napi_create_promise(env: Env, deferred: *Deferred, promise: *Value) Status;
pub extern fn napi_resolve_deferred(env: Env, deferred: Deferred, value: Value) Status;
pub extern fn napi_throw_error(env: Env, code: [*:0]const u8, message: [*:0]const u8) Status;
pub extern fn napi_throw_type_error(env: Env, code: [*:0]const u8, message: [*:0]const u8) Status;
pub extern fn napi_throw_range_error(env: Env, code: [*:0]const u8, message: [*:0]const u8) Status;

pub extern fn napi_add_env_cleanup_hook(env: Env, hook: CleanupHook, arg: ?*anyopaque) Status;
pub extern fn napi_create_threadsafe_function(
    env: Env,
    function: ?Value,
    async_resource: ?Value,
    async_resource_name: Value,
    max_queue_size: usize,
    initial_thread_count: usize,
    finalize_data: ?*anyopaque,
    finalize: ?Finalize,
    context: ?*anyopaque,
    call_js: CallJs,
    result: *ThreadsafeFunction,
) Status;
pub extern fn napi_call_threadsafe_function(
    function: ThreadsafeFunction,
    data: ?*anyopaque,
    mode: CallMode,
) Status;
pub extern fn napi_release_threadsafe_function(
    function: ThreadsafeFunction,
    mode: ReleaseMode,
) Status;
pub extern fn napi_ref_threadsafe_function(env: Env, function: ThreadsafeFunction) Status;
pub extern fn napi_unref_threadsafe_function(env: Env, function: ThreadsafeFunction) Status;
