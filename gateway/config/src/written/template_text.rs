//! Templates in the configuration. One kind produces text, the other produces JSON.

use gateway_template::Template;

use super::Form;

/// A template that produces text, such as a URL.
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

/// A template that produces JSON, such as a body.
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
