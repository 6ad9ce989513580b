//! Reads `metadata.json`, the export of Hasura's console, as the files of a metadata folder.

use serde_json::Value as Json;

/// The parts of the export with the files that contain them in a folder.
const FILES: [(&str, &str); 13] = [
    ("remote_schemas", "remote_schemas.yaml"),
    ("query_collections", "query_collections.yaml"),
    ("rest_endpoints", "rest_endpoints.yaml"),
    ("allowlist", "allow_list.yaml"),
    ("cron_triggers", "cron_triggers.yaml"),
    ("inherited_roles", "inherited_roles.yaml"),
    ("network", "network.yaml"),
    ("api_limits", "api_limits.yaml"),
    (
        "graphql_schema_introspection",
        "graphql_schema_introspection.yaml",
    ),
    ("opentelemetry", "opentelemetry.yaml"),
    ("metrics_config", "metrics_config.yaml"),
    ("backend_configs", "backend_configs.yaml"),
    ("sources", "databases/databases.yaml"),
];

/// An export of Hasura's console.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataFile {
    metadata: Json,
}

impl MetadataFile {
    /// Reads the text of the export.
    ///
    /// # Errors
    /// Fails with a sentence if the text is not JSON, or not metadata of version 3.
    pub fn read(text: &str) -> Result<Self, String> {
        let document: Json = serde_json::from_str(text)
            .map_err(|error| format!("expected the JSON of an export, found: {error}"))?;
        let metadata = match document {
            Json::Object(mut members) => match members.remove("metadata") {
                // The API returns the metadata with its version around it.
                Some(metadata) => metadata,
                None => Json::Object(members),
            },
            other => other,
        };
        match metadata["version"].as_u64() {
            Some(3) => Ok(Self { metadata }),
            Some(found) => Err(format!(
                "expected metadata of version 3, found version {found}; export it from Hasura 2"
            )),
            None => Err("expected `version: 3` in the metadata, found none".to_owned()),
        }
    }

    /// The text of the file `name` of a metadata folder with the same content.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<String> {
        if name == "actions.yaml" {
            let (actions, types) = (&self.metadata["actions"], &self.metadata["custom_types"]);
            return Some(
                serde_json::json!({"actions": actions, "custom_types": types}).to_string(),
            );
        }
        // JSON is YAML.
        let (member, _) = FILES.iter().find(|(_, file)| *file == name)?;
        Some(self.metadata[*member].to_string())
    }
}
