//! Queries of a running device: the activity of its buffer, and how full it is.

use super::{Backend, BufferEvent, Device};

/// How full a device is at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Requests submitted and not finished.
    pub requests: u32,
    /// Pages of the buffer whose contents flash does not have.
    pub dirty_pages: u32,
}

impl<B: Backend> Device<B> {
    /// Starts or stops the log of the buffer.
    pub fn set_buffer_log(&mut self, on: bool) {
        self.cache.set_log(on);
        self.find_path();
    }

    /// Takes what was logged of the buffer since the last call.
    pub fn take_buffer_log(&mut self) -> Vec<BufferEvent> {
        self.cache.take_log()
    }

    /// How full the device is now.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            requests: self.outstanding() as u32,
            dirty_pages: self.cache.dirty_pages(),
        }
    }
}
