//! Judges bodies that have a `Content-Encoding`.
//!
//! Equal bytes have equal content, so the encoded bytes of a correct response are the reference. Some servers
//! encode the same content differently each time, such as with the time in the header of gzip. The checksum
//! and the length at the end of a gzip body then judge each response. A sample of the responses is decoded
//! after the load. A response that differs is decoded at once only for rules that need its content: GraphQL
//! errors, ignored members and captures.

use std::sync::Arc;

use model::{CodedAnswers, IDENTITY};

use super::graphql;
use super::{Findings, Mode, Rules};
use crate::coding::{self, decoded};
use crate::job::Expectation;
use crate::mismatch::Mismatch;
use crate::recorder::encodings::Encoding;

/// Size limit for decoding a body under load, if the known body is not larger.
const CONTENT_MAX: usize = 16 * 1024 * 1024;

/// Size limit for keeping an encoded body while it arrives.
const ENCODED_MAX: usize = 16 * 1024 * 1024;

/// An encoded body that was found correct.
#[derive(Clone, Debug)]
pub(super) struct CodedReference {
    coding: String,
    bytes: Arc<[u8]>,
    content: Arc<[u8]>,
    /// The end of every correct gzip body, if the reference has such an end. Bodies with several gzip members
    /// do not.
    trailer: Option<[u8; 8]>,
}

/// The coding of the response that is arriving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Coding {
    #[default]
    Plain,
    /// The coding of the reference.
    Known,
    Other(String),
}

/// The method that found an encoded body correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgedBy {
    SameBytes,
    Checksum,
    Decoding,
    /// No method yet. A sample of these responses is decoded after the load.
    Sample,
}

impl JudgedBy {
    #[inline]
    pub(crate) fn count(self, answers: &mut CodedAnswers) {
        *match self {
            JudgedBy::SameBytes => &mut answers.same_bytes,
            JudgedBy::Checksum => &mut answers.checksum,
            JudgedBy::Decoding => &mut answers.decoded,
            JudgedBy::Sample => &mut answers.differing,
        } += 1;
    }
}

impl CodedReference {
    fn new(coding: &str, bytes: Arc<[u8]>, content: Arc<[u8]>) -> CodedReference {
        let trailer = coding::gzip_trailer(&content);
        let is_known = coding == "gzip" && bytes.ends_with(&trailer);
        CodedReference {
            coding: coding.to_owned(),
            bytes,
            content,
            trailer: is_known.then_some(trailer),
        }
    }

    /// Returns the reference of an expectation. `None` if its body cannot be decoded, and then the first
    /// response reports the reason.
    pub(super) fn of(expect: &Expectation) -> Option<CodedReference> {
        let encoded = expect.encoded.as_ref()?;
        let content = decoded(&encoded.coding, &encoded.bytes, usize::MAX).ok()?;
        let bytes = Arc::clone(&encoded.bytes);
        Some(CodedReference::new(
            &encoded.coding,
            bytes,
            Arc::from(content),
        ))
    }
}

impl Rules {
    /// Returns the coding of a response, compared with the coding of the reference.
    #[inline]
    pub(super) fn coding(&self, encoding: &Encoding) -> Coding {
        match encoding.as_ref() {
            IDENTITY => Coding::Plain,
            own if self.coded.as_ref().is_some_and(|known| known.coding == own) => Coding::Known,
            other => Coding::Other(other.to_owned()),
        }
    }

    /// Judges the content of a body like the hot path judges a plain body.
    fn judge_content(&self, content: &[u8]) -> Result<(), Mismatch> {
        let Some(reference) = &self.reference else {
            return match self.graphql {
                true => graphql::scan(content).map_err(Mismatch::Graphql),
                false => Ok(()),
            };
        };
        if **reference == *content {
            return self
                .reference_fault
                .map_or(Ok(()), |fault| Err(Mismatch::Graphql(fault)));
        }
        if self.graphql {
            graphql::scan(content).map_err(Mismatch::Graphql)?;
        }
        if let Some(pattern) = &self.pattern {
            return match pattern.differs_from(content) {
                None => Ok(()),
                Some(it) => Err(Mismatch::Member {
                    pointer: it.pointer,
                    expected: it.expected,
                    found: it.found,
                }),
            };
        }
        if !self.must_equal {
            return Ok(());
        }
        let equal = reference.iter().zip(content);
        Err(Mismatch::Body {
            at: equal.take_while(|(one, other)| one == other).count(),
            expected_bytes: reference.len(),
            found_bytes: content.len() as u64,
        })
    }

    /// Decodes and judges a body.
    fn judge_encoded(&self, coding: &str, body: &[u8]) -> Result<Vec<u8>, Mismatch> {
        let known = self.reference.as_ref().map_or(0, |known| known.len());
        let content = decoded(coding, body, CONTENT_MAX.max(known)).map_err(Mismatch::Coding)?;
        match self.judge_content(&content) {
            Ok(()) => Ok(content),
            Err(mismatch) => Err(Mismatch::Decoded {
                coding: coding.to_owned(),
                mismatch: Box::new(mismatch),
            }),
        }
    }

    /// Judges an encoded body of the sample, in the coding of the reference.
    pub(crate) fn judge_sampled(&self, body: &[u8]) -> Result<(), Mismatch> {
        let Some(known) = &self.coded else {
            unreachable!("only an answer in the coding of the reference is sampled");
        };
        self.judge_encoded(&known.coding, body).map(|_| ())
    }

    /// True if all correct responses have equal content and the rules require no other check.
    fn knows_the_content(&self) -> bool {
        self.must_equal && self.pattern.is_none() && self.captures.is_empty()
    }
}

impl Findings {
    /// Takes the next bytes of an encoded body.
    #[inline]
    pub(super) fn coded_body(&mut self, rules: &Rules, part: &[u8]) {
        if self.mode == Mode::CompareCoded
            && let Some(known) = &rules.coded
        {
            let end = self.equal_bytes + part.len();
            if known.bytes.get(self.equal_bytes..end) == Some(part) {
                self.equal_bytes = end;
                return;
            }
            self.learned.clear();
            self.learned
                .extend_from_slice(&known.bytes[..self.equal_bytes]);
            self.mode = Mode::CollectCoded;
        }
        if self.learned.len() + part.len() > ENCODED_MAX {
            // Not `clear`, which would keep the allocation.
            self.learned = Vec::new();
            self.mode = Mode::TooLongCoded;
        } else {
            self.learned.extend_from_slice(part);
        }
    }

    /// Returns the verdict on an encoded body.
    pub(super) fn judge_coded(&mut self, rules: &mut Rules) -> Option<Mismatch> {
        if self.mode == Mode::TooLongCoded {
            return Some(Mismatch::EncodedTooLarge { most: ENCODED_MAX });
        }
        if self.mode == Mode::CompareCoded
            && let Some(known) = &rules.coded
        {
            if self.equal_bytes == known.bytes.len() {
                self.judged_by = Some(JudgedBy::SameBytes);
                if !rules.captures.is_empty() {
                    known.content.as_ref().clone_into(&mut self.whole);
                }
                return None;
            }
            // The body ended early.
            self.learned.clear();
            self.learned
                .extend_from_slice(&known.bytes[..self.equal_bytes]);
        }
        if self.coding == Coding::Known
            && rules.knows_the_content()
            && let Some(known) = &rules.coded
        {
            return match known.trailer {
                Some(trailer) if !self.learned.ends_with(&trailer) => {
                    // Another body, or a body with several members.
                    self.judged_by = Some(JudgedBy::Decoding);
                    rules.judge_sampled(&self.learned).err()
                }
                Some(_) => {
                    self.judged_by = Some(JudgedBy::Checksum);
                    None
                }
                None => {
                    self.judged_by = Some(JudgedBy::Sample);
                    None
                }
            };
        }
        let coding = match (&self.coding, &rules.coded) {
            (Coding::Other(coding), _) => coding.clone(),
            (_, Some(known)) => known.coding.clone(),
            (_, None) => unreachable!("a known coding is that of the reference"),
        };
        let content = match rules.judge_encoded(&coding, &self.learned) {
            Ok(content) => content,
            Err(mismatch) => return Some(mismatch),
        };
        self.judged_by = Some(JudgedBy::Decoding);
        // Set once, because over HTTP/2 other responses that use it may be on their way.
        if rules.coded.is_none() {
            let bytes = Arc::from(self.learned.as_slice());
            rules.coded = Some(CodedReference::new(
                &coding,
                bytes,
                Arc::from(content.as_slice()),
            ));
        }
        if !rules.captures.is_empty() {
            self.whole = content;
        }
        None
    }

    /// Returns the encoded body of a response that was found correct without decoding. The next body is
    /// collected again.
    pub(crate) fn encoded(&self) -> Option<&[u8]> {
        let is_undecoded = matches!(self.judged_by, Some(JudgedBy::Sample | JudgedBy::Checksum));
        is_undecoded.then_some(self.learned.as_slice())
    }
}
