//! Authorization of operations by the [rules](crate::access_rules) of a supergraph.
//!
//! Before planning, the gateway removes unauthorized fields from the operation. So it does not request them
//! from any subgraph. In the response, these fields are null, with an error. The gateway decides for each
//! possible object type. It removes a field of an interface if the field is unauthorized for one of the
//! object types, with any fragments in the query.

mod filter;

use crate::access_rules::{Demands, Grants};
use crate::check::Chosen;
use crate::checked::Checked;
use crate::error::{GraphqlError, write_errors};
use crate::limits::Fragments;
use crate::limits::QueryDocument;
use crate::options::{AuthorizationOptions, ReportIn};
use crate::projection_compiler;
use crate::refusal::Refusal;
use crate::supergraph::Supergraph;

/// The code of errors about unauthorized fields and types.
pub const UNAUTHORIZED: &str = "UNAUTHORIZED_FIELD_OR_TYPE";

/// Errors about the removed fields of an operation, and their place in the response.
#[derive(Debug)]
pub(crate) struct Unauthorized {
    pub(crate) errors: Vec<GraphqlError>,
    report_in: ReportIn,
}

impl Unauthorized {
    /// The errors to report in `errors`.
    pub(crate) fn in_errors(&self) -> &[GraphqlError] {
        match self.report_in {
            ReportIn::Errors => &self.errors,
            ReportIn::Extensions | ReportIn::Nothing => &[],
        }
    }

    /// The errors to report in the extensions.
    fn in_extensions(&self) -> &[GraphqlError] {
        match self.report_in {
            ReportIn::Extensions => &self.errors,
            ReportIn::Errors | ReportIn::Nothing => &[],
        }
    }

    /// Appends `,"extensions":…` to a response if errors are reported there. `completion` contains the values
    /// that the schema does not allow.
    pub(crate) fn write_extensions(&self, completion: &[GraphqlError], out: &mut Vec<u8>) {
        write_extensions(self.in_extensions(), completion, out);
    }

    pub(crate) fn weight(&self) -> usize {
        let errors = self.errors.iter();
        errors
            .map(|it| it.weight() + size_of::<GraphqlError>())
            .sum()
    }
}

/// Appends `,"extensions":…` if there is an error for it.
pub(crate) fn write_extensions(
    unauthorized: &[GraphqlError],
    completion: &[GraphqlError],
    out: &mut Vec<u8>,
) {
    let members = [
        (&b"\"authorizationErrors\":"[..], unauthorized),
        (b"\"valueCompletion\":", completion),
    ];
    let mut opener = &b",\"extensions\":{"[..];
    for (key, errors) in members {
        if !errors.is_empty() {
            out.extend_from_slice(opener);
            out.extend_from_slice(key);
            write_errors(errors, out);
            opener = b",";
        }
    }
    if opener == b"," {
        out.push(b'}');
    }
}

/// An operation under preparation, with its demands.
pub(crate) struct Cut<'a> {
    supergraph: &'a Supergraph,
    options: AuthorizationOptions,
    document: &'a QueryDocument,
    chosen: &'a Chosen<'a>,
    pub(crate) demands: Demands,
}

/// The authorized part of an operation.
pub(crate) struct Remainder {
    pub(crate) unauthorized: Unauthorized,
    /// The document to plan. `None` if it is the client's document.
    pub(crate) asked: Option<QueryDocument>,
}

impl<'a> Cut<'a> {
    pub(crate) fn new(
        supergraph: &'a Supergraph,
        options: AuthorizationOptions,
        document: &'a QueryDocument,
        chosen: &'a Chosen<'a>,
        checked: &Checked,
    ) -> Self {
        let schema = &supergraph.schema;
        let demands = match &supergraph.rules {
            Some(rules) if options.enabled => {
                let root = schema.root(checked.kind);
                filter::demands(rules, schema, document, chosen.operation, root)
            }
            _ => Demands::default(),
        };
        Cut {
            supergraph,
            options,
            document,
            chosen,
            demands,
        }
    }

    /// Removes the fields and types that these grants do not allow. `None` removes no field.
    pub(crate) fn apply(
        &self,
        grants: Option<&Grants>,
        checked: &mut Checked,
    ) -> Result<Remainder, Refusal> {
        let mut rest = Remainder {
            unauthorized: Unauthorized {
                errors: Vec::new(),
                report_in: self.options.report_in,
            },
            asked: None,
        };
        let (Some(rules), Some(grants)) = (&self.supergraph.rules, grants) else {
            return Ok(rest);
        };
        let schema = &self.supergraph.schema;
        let root = schema.root(checked.kind);
        let filtered = filter::filter(
            rules,
            schema,
            self.document,
            self.chosen.operation,
            root,
            &self.demands,
            grants,
        );
        rest.unauthorized.errors = filtered.errors;
        // A request can miss some demands and still see every field, because rules have alternatives. Then no
        // field was removed.
        if rest.unauthorized.errors.is_empty() || self.options.dry_run {
            return Ok(rest);
        }
        if self.options.reject {
            return Err(Refusal::from_errors(rest.unauthorized.errors));
        }
        checked.projection = projection_compiler::compile(
            schema,
            &Fragments::new(),
            &checked.declared,
            root,
            &filtered.shown,
        )
        .map_err(|excess| Refusal::from_error(excess.error()))?;
        rest.asked = Some(filtered.asked);
        Ok(rest)
    }
}
