//! nbdkit's plugin interface, version 2 (nbdkit-plugin(3)): the struct that a plugin provides, and the functions that
//! nbdkit provides. The names are nbdkit's. The plugin is preloaded into nbdkit and into programs that nbdkit starts.
//! These programs lack nbdkit's functions and must start nevertheless. Therefore each function is looked up only when
//! it is called.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Thread model: nbdkit may make several calls at the same time, on one connection or on several.
pub const THREAD_MODEL_PARALLEL: c_int = 3;
pub const FLAG_MAY_TRIM: u32 = 1;
pub const FLAG_FUA: u32 = 1 << 1;
pub const FLAG_REQ_ONE: u32 = 1 << 2;
pub const FLAG_FAST_ZERO: u32 = 1 << 3;
pub const FUA_NATIVE: c_int = 2;
pub const CACHE_NATIVE: c_int = 2;
pub const EXTENT_HOLE: u32 = 1;
pub const EXTENT_ZERO: u32 = 1 << 1;

/// nbdkit's list of extents. A plugin uses only the address of the list.
#[repr(C)]
pub struct Extents {
    _private: [u8; 0],
}

type Unused = Option<unsafe extern "C" fn()>;

/// `struct nbdkit_plugin` up to the last member that this plugin uses. nbdkit reads the length of the struct from
/// `_struct_size`.
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
    pub preconnect: Option<extern "C" fn(c_int) -> c_int>,
    pub get_ready: Option<extern "C" fn() -> c_int>,
    pub after_fork: Option<extern "C" fn() -> c_int>,
    pub list_exports: Unused,
    pub default_export: Unused,
    pub export_description: Unused,
    pub cleanup: Option<extern "C" fn()>,
    pub block_size: Option<extern "C" fn(*mut c_void, *mut u32, *mut u32, *mut u32) -> c_int>,
}

// SAFETY: the pointers in the struct lead to constant strings, which are never written.
unsafe impl Sync for Plugin {}

/// A function of another library. It is looked up by name at its first call.
pub struct Function {
    name: &'static CStr,
    /// Search scope for the dynamic linker: `RTLD_DEFAULT` or `RTLD_NEXT`.
    scope: *mut c_void,
    address: AtomicPtr<c_void>,
}

// SAFETY: the scope is a constant of the dynamic linker, and is never dereferenced.
unsafe impl Sync for Function {}

impl Function {
    /// Returns a function that the program nbdkit provides.
    pub const fn of_program(name: &'static CStr) -> Function {
        Function::new(name, libc::RTLD_DEFAULT)
    }

    /// Returns the function `name` of the next library in the search order. The plugin has a function of the same name,
    /// which hides it.
    pub const fn hidden(name: &'static CStr) -> Function {
        Function::new(name, libc::RTLD_NEXT)
    }

    const fn new(name: &'static CStr, scope: *mut c_void) -> Function {
        let address = AtomicPtr::new(ptr::null_mut());
        Function {
            name,
            scope,
            address,
        }
    }

    /// Returns the function's address, which is never null.
    ///
    /// # Panics
    /// Panics if no library of the process has the function.
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name ends in a zero byte, and the scope is one of the linker's constants.
        let found = unsafe { libc::dlsym(self.scope, self.name.as_ptr()) };
        assert!(!found.is_null(), "{:?}: not found", self.name);
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

static ERROR: Function = Function::of_program(c"nbdkit_error");
static SET_ERROR: Function = Function::of_program(c"nbdkit_set_error");
static SHUTDOWN: Function = Function::of_program(c"nbdkit_shutdown");
static ADD_EXTENT: Function = Function::of_program(c"nbdkit_add_extent");
static EXPORT_NAME: Function = Function::of_program(c"nbdkit_export_name");

/// Prints a message as the server's.
pub fn error(message: &CStr) {
    type Error = unsafe extern "C" fn(*const c_char, ...);
    // SAFETY: the type is that of the function (nbdkit-plugin(3)). Both strings end in a zero byte. The format "%s"
    // takes one argument.
    unsafe {
        mem::transmute::<*mut c_void, Error>(ERROR.address())(c"%s".as_ptr(), message.as_ptr())
    }
}

/// Sets the error that the client receives for a call that returns -1.
pub fn set_error(errno: c_int) {
    // SAFETY: the type is that of the function. The argument is a number.
    unsafe { mem::transmute::<*mut c_void, extern "C" fn(c_int)>(SET_ERROR.address())(errno) }
}

/// Returns the name of the export that the client of this connection requested. The name of the default export is
/// empty.
pub fn export_name() -> String {
    type ExportName = extern "C" fn() -> *const c_char;
    // SAFETY: the type is that of the function, which takes no arguments.
    let name = unsafe { mem::transmute::<*mut c_void, ExportName>(EXPORT_NAME.address())() };
    if name.is_null() {
        return String::new();
    }
    // SAFETY: nbdkit owns the string, which ends in a zero byte. It is valid during the connection.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_string_lossy().into_owned()
}

/// Makes nbdkit stop accepting clients and reject new requests. Returns immediately.
pub fn shutdown() {
    // SAFETY: the type is that of the function, which takes no arguments.
    unsafe { mem::transmute::<*mut c_void, extern "C" fn()>(SHUTDOWN.address())() }
}

/// Adds an extent to the list that a call of the plugin returns. Returns -1 when the list is complete.
///
/// # Safety
/// The caller ensures that `extents` is the list that nbdkit passed to the running call, and that
/// `offset` follows the previous extent.
pub unsafe fn add_extent(extents: *mut Extents, offset: u64, length: u64, kind: u32) -> c_int {
    type AddExtent = unsafe extern "C" fn(*mut Extents, u64, u64, u32) -> c_int;
    // SAFETY: the type is that of the function. The caller vouches for the arguments.
    unsafe {
        mem::transmute::<*mut c_void, AddExtent>(ADD_EXTENT.address())(
            extents, offset, length, kind,
        )
    }
}
