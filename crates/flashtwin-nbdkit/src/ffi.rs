//! What nbdkit's plugin interface looks like, version 2 (nbdkit-plugin(3)): the struct that a plugin
//! hands over, and the functions that the server lends it. Names are the server's.

use std::ffi::{c_char, c_int, c_void};

/// Calls may come at once, on one connection and on several.
pub const THREAD_MODEL_PARALLEL: c_int = 3;
pub const FLAG_MAY_TRIM: u32 = 1;
pub const FLAG_FUA: u32 = 1 << 1;
pub const FLAG_REQ_ONE: u32 = 1 << 2;
pub const FLAG_FAST_ZERO: u32 = 1 << 3;
pub const FUA_NATIVE: c_int = 2;
pub const CACHE_NATIVE: c_int = 2;
pub const EXTENT_HOLE: u32 = 1;
pub const EXTENT_ZERO: u32 = 1 << 1;

/// The server's own.
#[repr(C)]
pub struct Extents {
    _private: [u8; 0],
}

type Unused = Option<unsafe extern "C" fn()>;

/// `struct nbdkit_plugin` up to the last member that is used here; the server reads
/// `_struct_size` bytes of it.
#[repr(C)]
pub struct Plugin {
    pub _struct_size: u64,
    pub _api_version: c_int,
    pub _thread_model: c_int,
    pub name: *const c_char,
    pub longname: *const c_char,
    pub version: *const c_char,
    pub description: *const c_char,
    pub load: Unused,
    pub unload: Unused,
    pub config: Option<extern "C" fn(*const c_char, *const c_char) -> c_int>,
    pub config_complete: Unused,
    pub config_help: *const c_char,
    pub open: Option<extern "C" fn(c_int) -> *mut c_void>,
    pub close: Unused,
    pub get_size: Option<extern "C" fn(*mut c_void) -> i64>,
    pub can_write: Unused,
    pub can_flush: Unused,
    pub is_rotational: Unused,
    pub can_trim: Unused,
    pub _v1: [Unused; 5],
    pub errno_is_preserved: c_int,
    pub dump_plugin: Unused,
    pub can_zero: Unused,
    pub can_fua: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub pread: Option<extern "C" fn(*mut c_void, *mut c_void, u32, u64, u32) -> c_int>,
    pub pwrite: Option<extern "C" fn(*mut c_void, *const c_void, u32, u64, u32) -> c_int>,
    pub flush: Option<extern "C" fn(*mut c_void, u32) -> c_int>,
    pub trim: Option<extern "C" fn(*mut c_void, u32, u64, u32) -> c_int>,
    pub zero: Option<extern "C" fn(*mut c_void, u32, u64, u32) -> c_int>,
    pub magic_config_key: *const c_char,
    pub can_multi_conn: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub can_extents: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub extents: Option<extern "C" fn(*mut c_void, u32, u64, u32, *mut Extents) -> c_int>,
    pub can_cache: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub cache: Option<extern "C" fn(*mut c_void, u32, u64, u32) -> c_int>,
    pub thread_model: Unused,
    pub can_fast_zero: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub preconnect: Unused,
    pub get_ready: Option<extern "C" fn() -> c_int>,
    pub after_fork: Option<extern "C" fn() -> c_int>,
    pub list_exports: Unused,
    pub default_export: Unused,
    pub export_description: Unused,
    pub cleanup: Option<extern "C" fn()>,
    pub block_size: Option<extern "C" fn(*mut c_void, *mut u32, *mut u32, *mut u32) -> c_int>,
}

// SAFETY: its pointers lead to constant strings, which are never written.
unsafe impl Sync for Plugin {}

extern "C" {
    /// Prints a message as the server's; takes printf's arguments.
    pub fn nbdkit_error(format: *const c_char, ...);
    /// The error that the client gets for a call that returns -1.
    pub fn nbdkit_set_error(errno: c_int);
    /// Stops accepting clients and rejects new requests; returns immediately.
    pub fn nbdkit_shutdown();
    /// Adds a stretch to those asked for; -1 once no more are wanted.
    pub fn nbdkit_add_extent(extents: *mut Extents, offset: u64, length: u64, kind: u32) -> c_int;
}
