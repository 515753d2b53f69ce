//! The requests of a client over its connection.
//!
//! Order of operations (D-126): a write puts its data in the store before the device receives the request. A read takes
//! its data from the store after the device has completed the request. Therefore a read returns all writes that were
//! acknowledged before it was requested. It may also return parts of concurrent writes, which NBD permits.

use std::io;
use std::ops::Range;

use flashtwin::{Op, PlacementId};

use crate::undo::Undo;
use crate::{Call, Failure, Server};

/// A connection to a [`Server`]. After a power loss, all calls on it fail until the client connects again, because a
/// host would have lost its power, too.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    server: &'a Server,
    cuts: u64,
    placement: PlacementId,
}

impl<'a> Session<'a> {
    pub(crate) fn new(server: &'a Server, cuts: u64) -> Session<'a> {
        Session {
            server,
            cuts,
            placement: PlacementId::NONE,
        }
    }

    /// Returns a session in which all writes have the placement id `placement`.
    pub fn placed(self, placement: PlacementId) -> Session<'a> {
        Session { placement, ..self }
    }

    /// Returns the number of power losses before this session was opened.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Reads a range; bytes never written are zero.
    ///
    /// # Errors
    /// Fails if the range is beyond the device, data were lost, the power was lost, or the store cannot be read.
    pub fn read(&self, to: &mut [u8], offset: u64) -> Result<(), Failure> {
        self.call(Op::Read, offset, to.len() as u64, false)?;
        self.server.store.read(to, offset)?;
        self.still_there()
    }

    /// Writes a range. With `fua`, the data are on the medium when this function returns.
    ///
    /// # Errors
    /// Fails if the range is beyond the device, the device accepts no more writes, the power was lost, or the store
    /// cannot be written.
    pub fn write(&self, from: &[u8], offset: u64, fua: bool) -> Result<(), Failure> {
        let bytes = self.range(offset, from.len() as u64)?;
        let store = &self.server.store;
        self.change(|undo| {
            undo.change(store, bytes.clone(), |part| {
                let from = &from[(part.start - offset) as usize..(part.end - offset) as usize];
                store.write(from, part.start)
            })
        })?;
        self.put(bytes, fua)
    }

    /// Returns when all writes acknowledged so far are on the medium.
    ///
    /// # Errors
    /// Fails if data were lost, the power was lost, or the store cannot be written.
    pub fn flush(&self) -> Result<(), Failure> {
        let undo = &self.server.undo;
        let number = undo.flush_asked();
        self.call(Op::Flush, 0, 0, false)?;
        undo.flush_ended(number, None);
        self.still_there()
    }

    /// Trims a range. Its bytes are zero afterwards.
    ///
    /// # Errors
    /// Fails as [`Session::write`] does.
    pub fn trim(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        let range = self.range(offset, bytes)?;
        let store = &self.server.store;
        self.change(|undo| undo.forget(range, || store.zero(offset, bytes)))?;
        self.call(Op::Trim, offset, bytes, false)
    }

    /// Fills a range with zeros. Whole pages are trimmed if trimming is allowed; zeros are written to the other bytes
    /// (D-150). With `fast_only`, fails if no page can be trimmed.
    ///
    /// # Errors
    /// Fails as [`Session::write`] does. With `fast_only`, also fails if zeroing would take as long as writing.
    pub fn zero(
        &self,
        offset: u64,
        bytes: u64,
        fua: bool,
        may_trim: bool,
        fast_only: bool,
    ) -> Result<(), Failure> {
        let range = self.range(offset, bytes)?;
        let whole = match may_trim {
            true => self.server.undo.whole(&range),
            false => range.start..range.start,
        };
        if fast_only && whole.is_empty() {
            return Err(Failure::Slow);
        }
        self.put_zeros(range.start..whole.start, fua)?;
        if !whole.is_empty() {
            let (at, bytes) = (whole.start, whole.end - whole.start);
            let store = &self.server.store;
            self.change(|undo| undo.forget(whole.clone(), || store.zero(at, bytes)))?;
            self.call(Op::Trim, at, bytes, fua)?;
        }
        self.put_zeros(whole.end..range.end, fua)
    }

    /// Reads a range into the device's buffer.
    ///
    /// # Errors
    /// Fails if the range is beyond the device, data were lost, or the power was lost.
    pub fn cache(&self, offset: u64, bytes: u64) -> Result<(), Failure> {
        self.call(Op::Read, offset, bytes, false)
    }

    /// Returns the range of bytes of a request that changes data. Fails if the range ends beyond the device, or if the
    /// device is read-only.
    fn range(&self, offset: u64, bytes: u64) -> Result<Range<u64>, Failure> {
        self.server.within(offset, bytes)?;
        self.server.refuse_if_read_only()?;
        Ok(offset..offset + bytes)
    }

    /// Changes the store. Fails if a power loss has ended this session. Waits while a power loss is being simulated, so
    /// that no call from before the loss changes the store after it.
    fn change(&self, how: impl FnOnce(&Undo) -> io::Result<()>) -> Result<(), Failure> {
        let _no_cut = self.server.powered.read();
        self.still_there()?;
        Ok(how(&self.server.undo)?)
    }

    fn put_zeros(&self, bytes: Range<u64>, fua: bool) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let store = &self.server.store;
        self.change(|undo| {
            undo.change(store, bytes.clone(), |part| {
                store.zero(part.start, part.end - part.start)
            })
        })?;
        self.put(bytes, fua)
    }

    /// Submits a write to the device. The data are already in the store.
    fn put(&self, bytes: Range<u64>, fua: bool) -> Result<(), Failure> {
        let undo = &self.server.undo;
        let number = if fua { undo.flush_asked() } else { 0 };
        self.call(Op::Write, bytes.start, bytes.end - bytes.start, fua)?;
        if fua {
            undo.flush_ended(number, Some(bytes));
        }
        self.still_there()
    }

    fn call(&self, op: Op, offset: u64, bytes: u64, fua: bool) -> Result<(), Failure> {
        self.server.within(offset, bytes)?;
        let call = Call {
            op,
            offset,
            bytes,
            fua,
            placement: self.placement,
        };
        self.server.driver.call(&call, self.cuts)
    }

    /// Fails if a power loss may have undone the call.
    fn still_there(&self) -> Result<(), Failure> {
        match self.server.driver.cuts() == self.cuts {
            true => Ok(()),
            false => Err(Failure::Cut),
        }
    }
}
