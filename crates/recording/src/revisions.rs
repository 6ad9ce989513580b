//! The two revisions of a repository that `weigh pr` compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The two revisions that were compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revisions {
    /// The older revision of the two.
    pub base: Revision,
    /// The newer revision of the two.
    pub head: Revision,
    /// True if both revisions contain equal files. Every measured difference is then noise.
    pub is_same: bool,
    /// Systems with byte-for-byte equal programs in both revisions. Empty if all files are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<String>,
}

/// A revision of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// The origin of the revision: a name such as `HEAD`, or the commit `where HEAD left main`.
    pub name: String,
    /// The hash of the commit, in hexadecimal.
    pub commit: String,
    /// The first line of the commit's message, without control characters.
    pub subject: String,
    /// True if uncommitted changes were measured with the revision.
    pub uncommitted: bool,
}

impl Revision {
    /// The commit in its usual short form.
    #[must_use]
    pub fn in_short(&self) -> &str {
        // The commit is hexadecimal, unless a user edited the recording.
        self.commit.get(..9).unwrap_or(&self.commit)
    }
}

impl Revisions {
    /// The compared revisions, as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Revisions { base, head, .. } = self;
        let uncommitted = if head.uncommitted {
            ", with uncommitted changes"
        } else {
            ""
        };
        let mut out = format!(
            "base is {} ({}), {}. Head is {} ({}){uncommitted}",
            base.in_short(),
            base.subject,
            base.name,
            head.in_short(),
            head.subject,
        );
        if self.is_same {
            out += ". Both have the same files, so any difference is noise";
        } else if !self.unchanged.is_empty() {
            let names: Vec<String> = self.unchanged.iter().map(|it| format!("`{it}`")).collect();
            out += &format!(
                ". Both builds are equal byte for byte: {}",
                names.join(", ")
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(name: &str, commit: &str) -> Revision {
        Revision {
            name: name.to_owned(),
            commit: commit.repeat(10),
            subject: format!("subject of {name}"),
            uncommitted: false,
        }
    }

    #[test]
    fn what_was_compared_is_said_in_a_sentence() {
        let mut revisions = Revisions {
            base: revision("where HEAD left main", "0123"),
            head: revision("HEAD", "abcd"),
            is_same: false,
            unchanged: vec!["db".to_owned()],
        };
        insta::assert_snapshot!(revisions.sentence(), @"
        base is 012301230 (subject of where HEAD left main), where HEAD left main. Head is abcdabcda (subject of HEAD). Both builds are equal byte for byte: `db`
        ");
        revisions.head.uncommitted = true;
        revisions.is_same = true;
        insta::assert_snapshot!(revisions.sentence(), @"
        base is 012301230 (subject of where HEAD left main), where HEAD left main. Head is abcdabcda (subject of HEAD), with uncommitted changes. Both have the same files, so any difference is noise
        ");
    }
}
