//! The input of a generator: a round of a lab, or a single load.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::load_spec::LoadSpec;
use super::packed_files::{FileOfLab, PackingList};
use super::round_spec::RoundSpec;

/// The job of a generator, as the file that it reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeneratorJob {
    /// A round of a lab.
    Round(Box<RoundSpec>),
    /// A single load.
    Load(LoadSpec),
}

/// The input of a generator.
pub struct GeneratorInput {
    pub job: GeneratorJob,
    /// The files of the lab, or of the flags.
    pub files: Vec<FileOfLab>,
}

impl GeneratorJob {
    fn files(&self) -> &PackingList {
        match self {
            GeneratorJob::Round(spec) => &spec.files,
            GeneratorJob::Load(spec) => &spec.files,
        }
    }
}

/// Reads the job of a generator, and the files next to it.
///
/// # Errors
/// When a file is missing or unreadable.
pub fn read(path: &Path) -> Result<GeneratorInput, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
    let job: GeneratorJob = serde_json::from_str(&text)
        .map_err(|error| format!("`{}` is not a job of a generator: {error}", path.display()))?;
    let files = job.files().read(path.parent().unwrap_or(Path::new(".")))?;
    Ok(GeneratorInput { job, files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_job_is_refused_with_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("job.json");
        let missing = read(&path).err().expect("no file");
        assert!(missing.contains("cannot be read"), "{missing}");
        std::fs::write(&path, "{\"other\": {}}").expect("a file");
        let other = read(&path).err().expect("no job");
        assert!(other.contains("is not a job of a generator"), "{other}");
    }
}
