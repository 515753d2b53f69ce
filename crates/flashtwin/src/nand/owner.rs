//! The owner of a page operation: the receiver of its result. A kind and a number are stored together in 32 bits.
//!
//! Both a device and an array send operations to flash, but never to the same flash. An array sends single pages only
//! to members with a front end that takes no time, that is, without a buffer and without delays in the link, the queues
//! or the controller.

/// Kinds of receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// A page of the device's buffer.
    CachedPage,
    /// A host request to the device.
    HostRequest,
    /// An array's request to a member.
    MemberRequest,
    /// A page operation of an array's front end.
    ArrayPage,
    /// A job of an array, such as a write with its parity, or a part of a rebuild.
    Job,
}

/// Owner of a page operation: the kind and the number of the receiver of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    /// Number of bits that store the number of an owner. The number of a cached page has two more bits.
    const BITS: u32 = 29;
    const HOST_REQUEST: u32 = 4;
    const MEMBER_REQUEST: u32 = 5;
    const ARRAY_PAGE: u32 = 6;
    const JOB: u32 = 7;

    #[inline(always)]
    const fn of(kind: u32, number: u32) -> Owner {
        debug_assert!(number >> Owner::BITS == 0, "more in flight than numbers");
        Owner(kind << Owner::BITS | number)
    }

    #[inline(always)]
    pub const fn cached_page(number: u32) -> Owner {
        debug_assert!(number >> 31 == 0, "more cached pages than numbers");
        Owner(number)
    }

    #[inline(always)]
    pub const fn host_request(number: u32) -> Owner {
        Owner::of(Owner::HOST_REQUEST, number)
    }

    #[inline(always)]
    pub const fn member_request(number: u32) -> Owner {
        Owner::of(Owner::MEMBER_REQUEST, number)
    }

    #[inline(always)]
    pub const fn array_page(number: u32) -> Owner {
        Owner::of(Owner::ARRAY_PAGE, number)
    }

    #[inline(always)]
    pub const fn job(number: u32) -> Owner {
        Owner::of(Owner::JOB, number)
    }

    /// Converts the owner to a tag of a request.
    pub fn tag(self) -> u64 {
        self.0.into()
    }

    /// Returns the owner that [`Owner::tag`] converted.
    pub fn from_tag(tag: u64) -> Owner {
        Owner(tag as u32)
    }

    /// Returns the kind of receiver.
    #[inline(always)]
    pub const fn receiver(self) -> Receiver {
        match self.0 >> Owner::BITS {
            Owner::HOST_REQUEST => Receiver::HostRequest,
            Owner::MEMBER_REQUEST => Receiver::MemberRequest,
            Owner::ARRAY_PAGE => Receiver::ArrayPage,
            Owner::JOB => Receiver::Job,
            _ => Receiver::CachedPage,
        }
    }

    #[inline(always)]
    pub const fn is_cached_page(self) -> bool {
        self.0 >> 31 == 0
    }

    #[inline(always)]
    pub const fn is_member_request(self) -> bool {
        self.0 >> Owner::BITS == Owner::MEMBER_REQUEST
    }

    /// Returns the number of the job; `None` if the owner is not a job.
    #[inline(always)]
    pub fn job_number(self) -> Option<u32> {
        (self.0 >> Owner::BITS == Owner::JOB).then_some(self.0 & ((1 << Owner::BITS) - 1))
    }

    /// Returns the number of the owner among all owners of its kind.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        match self.is_cached_page() {
            true => self.0,
            false => self.0 & ((1 << Owner::BITS) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_keep_their_kind_and_number() {
        let last = (1 << Owner::BITS) - 1;
        for number in [0, 1, last] {
            for (owner, receiver) in [
                (Owner::cached_page(number), Receiver::CachedPage),
                (Owner::host_request(number), Receiver::HostRequest),
                (Owner::member_request(number), Receiver::MemberRequest),
                (Owner::array_page(number), Receiver::ArrayPage),
                (Owner::job(number), Receiver::Job),
            ] {
                assert_eq!((owner.receiver(), owner.number()), (receiver, number));
                assert_eq!(Owner::from_tag(owner.tag()), owner);
                assert_eq!(owner.is_cached_page(), receiver == Receiver::CachedPage);
            }
        }
        let largest = Owner::cached_page((1 << 31) - 1);
        assert_eq!(largest.number(), (1 << 31) - 1);
    }
}
