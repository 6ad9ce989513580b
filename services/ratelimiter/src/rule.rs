//! The rule: when is a client with failed logins refused?
//!
//! It is one function of the state of an address, the time and the event. It reads no clock and takes no
//! lock. The memory store calls it. The script of the Redis store (`redis_store/decide.lua`) implements the
//! same rule in Lua, and a property test compares the two.
//!
//! Both lists are limited to the length that the decision needs ("more than Y failures", "more than N
//! e-mails"). The newest Y + 1 and N + 1 entries give the same decision as all entries.

#[cfg(test)]
pub(crate) mod tests;

/// The result of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A wrong password or an unknown user.
    Failed,
    /// The password was right.
    Succeeded,
}

/// The results of logins that a rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountedResults {
    /// Failed logins.
    #[default]
    Failed,
    /// Successful logins.
    Succeeded,
    /// All logins.
    Any,
}

impl CountedResults {
    /// True if this event counts.
    #[must_use]
    pub fn contains(self, event: Event) -> bool {
        match self {
            Self::Failed => event == Event::Failed,
            Self::Succeeded => event == Event::Succeeded,
            Self::Any => true,
        }
    }
}

/// Expiry rule of e-mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// An e-mail counts only if it occurred within the window.
    Fixed,
    /// An e-mail counts until the address has no failure for sixty windows, as in the original.
    Original,
}

/// The limits for logins. In the names of its fields, a failure is an event that the rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Length of a ban (X), in milliseconds.
    pub ban_ms: u64,
    /// Length of the window for failures (Z), in milliseconds.
    pub window_ms: u64,
    /// Failures that are forgiven before the current one (Y).
    pub failures_max: u32,
    /// Different e-mails that are forgiven (N).
    pub emails_max: u32,
    /// The expiry rule of e-mails.
    pub mode: Mode,
    /// True for the rule as described in prose: the current failure counts, and Y and N themselves are enough
    /// for a ban.
    pub inclusive: bool,
    /// The results that count.
    pub counts: CountedResults,
}

/// The state of one address. Times are milliseconds of one clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Times of failures, oldest first, at most Y + 1.
    pub times: Vec<u64>,
    /// E-mails as (fingerprint, last seen), oldest first, at most N + 1.
    pub emails: Vec<(u64, u64)>,
    /// The end of the ban. 0 if the address was not banned.
    pub banned_until: u64,
    /// Time of the newest recorded failure.
    pub touched: u64,
}

/// The decision for one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// True if the client must be refused.
    pub is_limited: bool,
    /// True if this event started a ban.
    pub starts_ban: bool,
    /// Time until the client may try again, in milliseconds. 0 if it is not limited.
    pub retry_ms: u64,
    /// Failures of the address within the window, including this one. A ban clears them.
    pub failures: u32,
}

impl Rule {
    /// Decides one event and updates the state.
    ///
    /// If the clock goes back, the age of earlier events counts as zero.
    pub fn decide(&self, state: &mut State, now: u64, event: Event, email: u64) -> Decision {
        // Before the check for a success: a banned client must not find out if the password was right.
        if state.banned_until > now {
            return Decision {
                is_limited: true,
                starts_ban: false,
                retry_ms: state.banned_until - now,
                failures: 0,
            };
        }
        let pass = |failures: usize| Decision {
            is_limited: false,
            starts_ban: false,
            retry_ms: 0,
            // The lists have at most 10,001 entries.
            failures: u32::try_from(failures).unwrap_or(u32::MAX),
        };
        if !self.counts.contains(event) {
            let recent = state.times.iter();
            return pass(recent.filter(|then| self.is_recent(**then, now)).count());
        }
        self.forget(state, now);
        // Failures before this one: the rule forgives Y of them and counts the next.
        let prior = state.times.len();
        // Moved to the end: a repeated e-mail counts once, with its newest time.
        state.emails.retain(|(known, _)| *known != email);
        state.emails.push((email, now));
        state.times.push(now);
        state.touched = now;
        keep_newest(&mut state.times, self.failures_max);
        keep_newest(&mut state.emails, self.emails_max);
        // A ban clears the rest of the state, so the address starts again without failures.
        if self.is_exceeded(prior, state.emails.len()) {
            *state = State {
                banned_until: now.saturating_add(self.ban_ms),
                touched: now,
                ..State::default()
            };
            return Decision {
                is_limited: true,
                starts_ban: true,
                retry_ms: self.ban_ms,
                failures: 0,
            };
        }
        pass(state.times.len())
    }

    /// Time after the last failure at which the state of an address without a ban expires.
    #[must_use]
    pub fn memory_ms(&self) -> u64 {
        match self.mode {
            Mode::Fixed => self.window_ms,
            // The original's record expires after Z·60 seconds.
            Mode::Original => self.window_ms.saturating_mul(60),
        }
    }

    /// Number of failures in a window that never start a ban.
    #[must_use]
    pub fn failures_allowed(&self) -> u32 {
        if self.inclusive {
            self.failures_max.saturating_sub(1)
        } else {
            self.failures_max.saturating_add(1)
        }
    }

    fn is_recent(&self, then: u64, now: u64) -> bool {
        // Saturating: if the clock goes back, the age is 0 and not a huge number.
        now.saturating_sub(then) < self.window_ms
    }

    fn forget(&self, state: &mut State, now: u64) {
        let age = |then: u64| now.saturating_sub(then);
        state.times.retain(|then| self.is_recent(*then, now));
        match self.mode {
            Mode::Fixed => state.emails.retain(|(_, seen)| age(*seen) < self.window_ms),
            Mode::Original if age(state.touched) >= self.memory_ms() => state.emails.clear(),
            Mode::Original => {}
        }
    }

    fn is_exceeded(&self, prior: usize, emails: usize) -> bool {
        let (failures_max, emails_max) = (self.failures_max as usize, self.emails_max as usize);
        if self.inclusive {
            prior + 1 >= failures_max && emails >= emails_max
        } else {
            prior > failures_max && emails > emails_max
        }
    }
}

/// Shortens a list, oldest first, to one more than `limit`.
fn keep_newest<T>(list: &mut Vec<T>, limit: u32) {
    // Oldest first, so the surplus is at the front.
    let surplus = list.len().saturating_sub(limit as usize + 1);
    list.drain(..surplus);
}
