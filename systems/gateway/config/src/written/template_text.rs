//! Templates in the configuration: those that make text, and those that make JSON.

use gateway_template::Template;

use super::Form;

/// The text of a template that makes text, such as a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateText(pub String);

impl Form for TemplateText {
    const NAME: &'static str = "template";

    fn read(text: &str) -> Result<Self, String> {
        match Template::text(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// The text of a template that makes JSON, such as a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateJson(pub String);

impl Form for TemplateJson {
    const NAME: &'static str = "json-template";

    fn read(text: &str) -> Result<Self, String> {
        match Template::json(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}
