//! Names of a file that stand for `k6/http` or for one of its functions.

use std::collections::{BTreeSet, HashSet};

use oxc_ast::ast::{
    BindingIdentifier, BindingPattern, Expression, ImportDeclaration, ImportDeclarationSpecifier,
    SimpleAssignmentTarget, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};

/// Functions of `k6/http` that send a request.
const SENDING: [&str; 11] = [
    "get",
    "post",
    "put",
    "patch",
    "del",
    "head",
    "options",
    "request",
    "asyncRequest",
    "batch",
    "delete",
];

/// Names of a file for `k6/http`, for its functions, and for classes of sessions.
#[derive(Debug, Default)]
pub(super) struct Names {
    modules: HashSet<String>,
    functions: HashSet<String>,
    sessions: HashSet<String>,
    /// Names that the file declares.
    declared: HashSet<String>,
    /// Names that the file assigns.
    assigned: BTreeSet<String>,
}

impl Names {
    /// True if the name is a function that sends a request.
    pub(super) fn is_function(&self, name: &str) -> bool {
        self.functions.contains(name)
    }

    /// True if the name is the module or a session.
    pub(super) fn is_module(&self, name: &str) -> bool {
        self.modules.contains(name)
    }

    /// Names that the file assigns without a declaration. Older scripts do this.
    pub(super) fn undeclared(&self) -> impl Iterator<Item = &String> {
        self.assigned
            .iter()
            .filter(|name| !self.declared.contains(*name))
    }

    /// True if a member of the module sends a request.
    pub(super) fn is_sending(name: &str) -> bool {
        SENDING.contains(&name)
    }

    /// True if the expression is the module: its name, or a call of `require`.
    fn is_module_value(&self, value: &Expression<'_>) -> bool {
        match value {
            Expression::Identifier(name) => self.is_module(&name.name),
            Expression::CallExpression(call) => {
                let is_require =
                    matches!(&call.callee, Expression::Identifier(it) if it.name == "require");
                let module = call.arguments.first().and_then(|it| it.as_expression());
                let is_http =
                    matches!(module, Some(Expression::StringLiteral(it)) if it.value == "k6/http");
                is_require && is_http
            }
            Expression::NewExpression(made) => {
                matches!(&made.callee, Expression::Identifier(it) if self.sessions.contains(it.name.as_str()))
            }
            _ => false,
        }
    }

    fn is_function_value(&self, value: &Expression<'_>) -> bool {
        match value {
            Expression::Identifier(name) => self.is_function(&name.name),
            Expression::StaticMemberExpression(member) => {
                self.is_module_value(&member.object) && Names::is_sending(&member.property.name)
            }
            _ => false,
        }
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.declared.insert(it.name.to_string());
    }

    fn visit_simple_assignment_target(&mut self, it: &SimpleAssignmentTarget<'a>) {
        if let SimpleAssignmentTarget::AssignmentTargetIdentifier(name) = it {
            self.assigned.insert(name.name.to_string());
        }
        walk::walk_simple_assignment_target(self, it);
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        let is_http = it.source.value == "k6/http";
        let is_session = it.source.value.contains("jslib.k6.io/httpx/");
        for specifier in it.specifiers.iter().flatten() {
            let local = specifier.name().to_string();
            match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) if is_http => {
                    let imported = named.imported.name();
                    if imported == "default" {
                        self.modules.insert(local);
                    } else if Names::is_sending(&imported) {
                        self.functions.insert(local);
                    }
                }
                _ if is_http => {
                    self.modules.insert(local);
                }
                _ if is_session => {
                    self.sessions.insert(local);
                }
                _ => {}
            }
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let Some(value) = &it.init {
            match &it.id {
                BindingPattern::BindingIdentifier(name) => {
                    if self.is_module_value(value) {
                        self.modules.insert(name.name.to_string());
                    } else if self.is_function_value(value) {
                        self.functions.insert(name.name.to_string());
                    }
                }
                BindingPattern::ObjectPattern(pattern) if self.is_module_value(value) => {
                    for property in &pattern.properties {
                        let member = property.key.name();
                        if let (Some(member), BindingPattern::BindingIdentifier(own)) =
                            (member, &property.value)
                            && Names::is_sending(&member)
                        {
                            self.functions.insert(own.name.to_string());
                        }
                    }
                }
                _ => {}
            }
        }
        walk::walk_variable_declarator(self, it);
    }
}
