//! Reads the body of a request, with a size limit and a time limit.
//!
//! A usual body is small and arrives with its head. Reading it then needs neither a copy nor a timer.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use http_body::Body;

/// The reason why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is larger than the limit.
    #[error("the body is larger than the limit")]
    TooLarge,
    /// The client took too long to send the body.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke or the chunks are malformed.
    #[error("the body ended early or is malformed")]
    Broken,
}

/// A whole body, in one or several pieces.
#[derive(Debug, PartialEq, Eq)]
pub enum Collected<B> {
    /// The body arrived in one piece.
    Whole(B),
    /// The body arrived in several pieces, or is empty.
    Joined(Vec<u8>),
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Collected<B> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Whole(piece) => piece.as_ref(),
            Self::Joined(bytes) => bytes,
        }
    }
}

/// Reads pieces until the end. `limit` is in bytes.
///
/// # Errors
/// [`BodyError::TooLarge`] as soon as the limit is exceeded, and [`BodyError::Broken`] if a piece is an
/// error.
pub async fn collect<B: AsRef<[u8]>, E>(
    limit: u64,
    mut next: impl AsyncFnMut() -> Option<Result<B, E>>,
) -> Result<Collected<B>, BodyError> {
    // Compared before a piece is copied, so that memory stays below the limit plus one piece.
    let fits = |length: usize| u64::try_from(length).is_ok_and(|length| length <= limit);
    let mut so_far = Collected::Joined(Vec::new());
    while let Some(piece) = next().await {
        let piece = piece.map_err(|_| BodyError::Broken)?;
        if !fits(so_far.as_ref().len() + piece.as_ref().len()) {
            return Err(BodyError::TooLarge);
        }
        so_far = match so_far {
            // The first piece is kept unchanged. Only a second piece causes a copy of both.
            Collected::Joined(bytes) if bytes.is_empty() => Collected::Whole(piece),
            Collected::Joined(mut bytes) => {
                bytes.extend_from_slice(piece.as_ref());
                Collected::Joined(bytes)
            }
            Collected::Whole(first) => Collected::Joined([first.as_ref(), piece.as_ref()].concat()),
        };
    }
    Ok(so_far)
}

/// Reads a body of hyper's kind. `limit` is in bytes.
///
/// # Errors
/// The errors of [`collect`].
pub async fn read<B>(body: B, limit: u64) -> Result<Collected<B::Data>, BodyError>
where
    B: Body<Data: AsRef<[u8]>>,
{
    let mut body = pin!(body);
    collect(limit, async || {
        loop {
            match poll_fn(|task| body.as_mut().poll_frame(task)).await? {
                Ok(frame) => {
                    // Other frames are trailers, which have no meaning here.
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    })
    .await
}

/// Waits for a read until the timer ends. The timer starts only if the read has to wait.
///
/// # Errors
/// The errors of the read, and [`BodyError::TooSlow`].
pub async fn in_time<T, Timer: Future>(
    read: impl Future<Output = Result<T, BodyError>>,
    start_timer: impl Fn() -> Timer,
) -> Result<T, BodyError> {
    let mut read = pin!(read);
    let mut timer = None;
    std::future::poll_fn(|task| {
        if let Poll::Ready(outcome) = read.as_mut().poll(task) {
            return Poll::Ready(outcome);
        }
        // Only after the read has waited: a timer takes a lock of the runtime's queue, and most bodies need
        // no timer. Pinned on the heap because it is created after `read` is pinned.
        let timer = timer.get_or_insert_with(|| Box::pin(start_timer()));
        timer.as_mut().poll(task).map(|_| Err(BodyError::TooSlow))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    /// Polls once. The futures of these tests are ready at once, or never.
    fn outcome<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn collected(pieces: &[&str], limit: u64) -> Result<Vec<u8>, BodyError> {
        let mut rest = pieces.iter();
        let read = collect(limit, async || rest.next().map(Ok::<_, ()>));
        let body = outcome(read).expect("nothing to wait for")?;
        Ok(body.as_ref().to_vec())
    }

    #[test]
    fn pieces_are_joined_in_order_up_to_the_limit() {
        assert_eq!(collected(&[], 0), Ok(Vec::new()));
        assert_eq!(collected(&["abc"], 3), Ok(b"abc".to_vec()));
        assert_eq!(collected(&["a", "", "b", "c"], 3), Ok(b"abc".to_vec()));
        assert_eq!(collected(&["abcd"], 3), Err(BodyError::TooLarge));
        assert_eq!(
            collected(&["a", "b", "c", "d"], 3),
            Err(BodyError::TooLarge)
        );
    }

    #[test]
    fn a_broken_piece_breaks_the_body() {
        let mut pieces = [Ok("a"), Err(())].into_iter();
        let read = collect(9, async || pieces.next());
        assert_eq!(outcome(read), Some(Err(BodyError::Broken)));
    }

    #[test]
    fn a_body_that_is_there_starts_no_timer() {
        let started = Cell::new(false);
        let read = in_time(ready(Ok(1)), || {
            started.set(true);
            ready(())
        });
        assert_eq!(outcome(read), Some(Ok(1)));
        assert!(!started.get());
    }

    #[test]
    fn a_body_that_does_not_come_is_given_up() {
        let read = in_time(pending::<Result<(), _>>(), || ready(()));
        assert_eq!(outcome(read), Some(Err(BodyError::TooSlow)));
    }
}
