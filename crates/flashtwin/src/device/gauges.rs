//! Gauges of a running device (the numbers of requests in flight and of dirty pages), and the log of its buffer.

use super::{Backend, BufferEvent, Device};

/// Occupancy of a device at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Number of requests that have been submitted and are not finished.
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

    /// Returns the events of the buffer that were logged since the last call.
    pub fn take_buffer_log(&mut self) -> Vec<BufferEvent> {
        self.cache.take_log()
    }

    /// Returns the occupancy of the device now.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            requests: self.outstanding() as u32,
            dirty_pages: self.cache.dirty_pages(),
        }
    }
}
