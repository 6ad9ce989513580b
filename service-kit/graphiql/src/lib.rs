//! GraphiQL, the GraphQL Foundation's page to write and send queries, as one file.
//!
//! The key idea: the page contains script, style and React. So it works without a network, and its content
//! security policy allows no other source. `bundle/` builds it from the locked packages
//! (`npm ci && npm run bundle`). Absent on purpose: routes for assets, and its fonts.

/// The page. It sends queries to its own path. It shows the `query` and `variables` parameters of its own
/// address.
pub const PAGE: &str = include_str!("../graphiql.html");

/// The value of `content-type` for the page.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::PAGE;

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        let start = PAGE.find("<style>").expect("a style");
        let head = &PAGE[..start];
        assert!(head.contains("default-src 'none'"));
        for tag in [
            "<script src",
            "<link rel=\"stylesheet\"",
            "@import",
            "url(http",
        ] {
            assert!(!PAGE.contains(tag), "{tag}");
        }
    }

    #[test]
    fn the_page_is_of_the_locked_packages() {
        let lock = include_str!("../bundle/package-lock.json");
        let locked = |name: &str| {
            let (_, rest) = lock
                .split_once(&format!("\"node_modules/{name}\": {{"))
                .expect("a locked package");
            let (_, rest) = rest.split_once("\"version\": \"").expect("a version");
            rest.split_once('"').expect("its end").0
        };
        for name in ["graphiql", "react", "react-dom"] {
            let line = format!("\n{name} {}\n", locked(name));
            assert!(PAGE.contains(&line), "{line}");
        }
        assert!(PAGE.contains(&format!(".version=\"{}\"", locked("react"))));
    }

    #[test]
    fn the_licenses_of_what_is_within_are_in_the_page() {
        for name in ["GraphQL Contributors", "Facebook, Inc. and its affiliates"] {
            assert!(PAGE.contains(name), "{name}");
        }
        assert!(PAGE.matches("MIT License").count() >= 2);
    }
}
