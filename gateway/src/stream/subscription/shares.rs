//! Shares of limited resources per client: the number of subscriptions, and the memory for their requests.
//!
//! One address may use as much as is left for all other addresses, as with connections. A single address gets
//! half, and two get a third each, so the next address still finds something. It is the address for
//! connection limits, too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Limit for all clients together.
    pub(crate) total: usize,
    /// Limit for one address. `None` means as much as is left for all other addresses.
    pub(crate) per_address: Option<usize>,
}

/// Limits of subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionLimits {
    /// Number of subscriptions.
    pub(crate) places: Limit,
    /// Bytes of the requests of all subscriptions.
    pub(crate) request_bytes: Limit,
}

/// A resource that the clients of all workers share.
#[derive(Debug, Default)]
pub(crate) struct Shares(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    addresses: HashMap<IpAddr, usize>,
}

/// The share of one client, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    address: Option<IpAddr>,
    amount: usize,
}

impl Shares {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `amount` for a client with this address. `None` if it exceeds a limit. Without an address, only
    /// the total counts.
    pub(crate) fn take(
        self: &Arc<Self>,
        amount: usize,
        address: Option<IpAddr>,
        limit: Limit,
    ) -> Option<Share> {
        let mut taken = self.lock();
        let left = limit.total.saturating_sub(taken.all);
        if amount > left {
            return None;
        }
        if let Some(address) = address {
            let own = taken.addresses.get(&address).copied().unwrap_or(0);
            if own.saturating_add(amount) > limit.per_address.unwrap_or(left) {
                return None;
            }
            taken.addresses.insert(address, own + amount);
        }
        taken.all += amount;
        Some(Share {
            shares: Arc::clone(self),
            address,
            amount,
        })
    }

    /// The amount in use.
    pub(crate) fn taken(&self) -> usize {
        self.lock().all
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        taken.all -= self.amount;
        let Some(address) = self.address else { return };
        if let Some(own) = taken.addresses.get_mut(&address) {
            *own -= self.amount;
            if *own == 0 {
                taken.addresses.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some([192, 0, 2, last].into())
    }

    fn of(total: usize) -> Limit {
        Limit {
            total,
            per_address: None,
        }
    }

    #[test]
    fn one_address_has_as_much_as_is_left_for_others() {
        let shares = Arc::<Shares>::default();
        let fill = |address, most| {
            let one = || shares.take(1, address, most);
            std::iter::from_fn(one).collect::<Vec<_>>()
        };
        let first = fill(address(1), of(10));
        let second = fill(address(2), of(10));
        let third = fill(address(3), of(10));
        assert_eq!((first.len(), second.len(), third.len()), (5, 3, 1));
        // This machine's own requests have no address, so they can use all that is left.
        let own = fill(None, of(10));
        assert_eq!((own.len(), shares.taken()), (1, 10));
        assert!(shares.take(1, address(4), of(10)).is_none());
        drop((first, second, third, own));
        assert_eq!(shares.taken(), 0);
        assert!(shares.lock().addresses.is_empty());
        let said = Limit {
            total: 10,
            per_address: Some(7),
        };
        assert_eq!(fill(address(1), said).len(), 7);
    }

    #[test]
    fn amounts_count_and_one_of_any_size_fits_where_nothing_is_taken() {
        let shares = Arc::<Shares>::default();
        assert!(shares.take(11, address(1), of(10)).is_none());
        let all = shares.take(10, address(1), of(10));
        assert!(all.is_some());
        drop(all);
        let _some = shares.take(4, address(1), of(10)).unwrap();
        assert!(shares.take(3, address(1), of(10)).is_none());
        assert!(shares.take(3, address(2), of(10)).is_some());
        assert!(
            shares
                .take(usize::MAX, address(1), of(usize::MAX))
                .is_none()
        );
    }
}
