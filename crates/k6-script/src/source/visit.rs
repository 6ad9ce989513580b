//! The walk over a parsed file that replaces operators by calls of the recorder.

use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, BinaryExpression, BindingPattern, CallExpression,
    ChainExpression, ConditionalExpression, DoWhileStatement, ExportAllDeclaration,
    ExportFromDeclaration, Expression, ForStatement, IfStatement, ImportDeclaration,
    ImportDeclarationSpecifier, LogicalExpression, NewExpression, SwitchStatement, UnaryExpression,
    VariableDeclarator, WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

use super::Import;
use super::edits::{Edits, place};
use super::names::Names;

/// The walk over one file.
pub(super) struct Visitor<'t> {
    text: &'t str,
    names: Names,
    first_site: usize,
    edits: Edits,
    /// Byte and callee of each call.
    sites: Vec<(u32, String)>,
    /// Byte of each import.
    imports: Vec<(u32, Import)>,
    /// Above zero inside of `a?.b`, which ends early as a whole.
    chains: u32,
}

/// Offset and callee of calls, and offset and content of imports.
type Found = (String, Vec<(u32, String)>, Vec<(u32, Import)>);

impl<'t> Visitor<'t> {
    pub(super) fn new(text: &'t str, names: Names, first_site: usize) -> Visitor<'t> {
        let mut edits = Edits::default();
        let undeclared: String = names
            .undeclared()
            .map(|name| format!("globalThis.{name} ??= undefined; "))
            .collect();
        // A module may not assign a name that does not exist.
        if !text.starts_with("#!") {
            edits.open(0, undeclared);
        }
        Visitor {
            text,
            names,
            first_site,
            edits,
            sites: Vec::new(),
            imports: Vec::new(),
            chains: 0,
        }
    }

    /// The changed text, the calls and the imports.
    pub(super) fn finish(self) -> Found {
        (self.edits.applied(self.text), self.sites, self.imports)
    }

    fn slice(&self, span: Span) -> &'t str {
        self.text
            .get(place(span.start)..place(span.end))
            .unwrap_or_default()
    }

    /// Makes a call of the recorder around an expression.
    fn wrap(&mut self, span: Span, call: &str) {
        self.edits.open(span.start, format!(" __weigh.{call}("));
        self.edits.close(span.end);
    }

    /// The place of an operator between two operands, without comments.
    fn operator(&self, after: u32, before: u32, operator: &str) -> Option<u32> {
        let gap = self.text.get(place(after)..place(before))?;
        let mut rest = gap;
        loop {
            let trimmed = rest.trim_start();
            let skipped = if let Some(comment) = trimmed.strip_prefix("/*") {
                comment.split_once("*/")?.1
            } else if let Some(comment) = trimmed.strip_prefix("//") {
                comment.split_once('\n')?.1
            } else if trimmed.starts_with(operator) {
                let offset = gap.len() - trimmed.len();
                return Some(after + u32::try_from(offset).ok()?);
            } else {
                return None;
            };
            rest = skipped;
        }
    }

    /// Marks a call of `k6/http`, so that calls that never run can be listed.
    fn site(&mut self, name: Span, callee: Span) {
        let number = self.first_site + self.sites.len();
        let words: String = self.slice(callee).split_whitespace().collect();
        self.sites.push((callee.start, words));
        self.edits
            .open(name.start, format!(" __weigh.site({number},"));
        self.edits.close(name.end);
    }

    fn call(&mut self, callee: &Expression<'_>) {
        match callee {
            Expression::Identifier(name) if self.names.is_function(&name.name) => {
                self.site(name.span, callee.span());
            }
            Expression::StaticMemberExpression(member) => {
                if let Expression::Identifier(name) = &member.object
                    && self.names.is_module(&name.name)
                    && Names::is_sending(&member.property.name)
                {
                    self.site(name.span, callee.span());
                }
            }
            Expression::ComputedMemberExpression(member) => {
                if let Expression::Identifier(name) = &member.object
                    && self.names.is_module(&name.name)
                {
                    self.site(name.span, callee.span());
                }
            }
            _ => {}
        }
    }

    fn import(&mut self, span: Span, module: &str, names: Vec<String>) {
        let import = Import {
            module: module.to_owned(),
            names,
            line: 0,
        };
        self.imports.push((span.start, import));
    }
}

/// True for a module in a file of the script.
fn is_local(module: &str) -> bool {
    module.starts_with('.') || module.starts_with('/') || module.starts_with("file:")
}

impl<'a> Visit<'a> for Visitor<'_> {
    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        let mut names = Vec::new();
        for specifier in it.specifiers.iter().flatten() {
            match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    names.push(named.imported.name().to_string());
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => {
                    names.push("default".to_owned());
                }
                // The default export of a module of k6 is the module itself.
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(all) => {
                    if !is_local(&it.source.value) {
                        let local = all.local.name.to_string();
                        self.edits.replace(all.span.start, all.span.end, local);
                    }
                }
            }
        }
        self.import(it.span, &it.source.value, names);
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        let names = it.specifiers.iter().map(|it| it.local.name().to_string());
        self.import(it.span, &it.source.value, names.collect());
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        self.import(it.span, &it.source.value, Vec::new());
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.call(&it.callee);
        match &it.callee {
            // The object is also `this` of the call.
            Expression::ComputedMemberExpression(member) => {
                self.visit_expression(&member.object);
                self.visit_expression(&member.expression);
            }
            callee => self.visit_expression(callee),
        }
        self.visit_arguments(&it.arguments);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        // A call within the name of a class would become the class.
        self.chains += 1;
        self.visit_expression(&it.callee);
        self.chains -= 1;
        self.visit_arguments(&it.arguments);
    }

    fn visit_expression(&mut self, it: &Expression<'a>) {
        if let Expression::ComputedMemberExpression(member) = it
            && self.chains == 0
            && !matches!(member.object, Expression::Super(_))
            && let Some(bracket) = self.operator(
                member.object.span().end,
                member.expression.span().start,
                "[",
            )
        {
            self.edits
                .open(member.span.start, " __weigh.at(".to_owned());
            self.edits.replace(bracket, bracket + 1, ",".to_owned());
            let end = member.span.end;
            self.edits.replace(end - 1, end, ")".to_owned());
        }
        walk::walk_expression(self, it);
    }

    fn visit_chain_expression(&mut self, it: &ChainExpression<'a>) {
        self.chains += 1;
        walk::walk_chain_expression(self, it);
        self.chains -= 1;
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        let operator = it.operator.as_str();
        if !matches!(operator, "in" | "instanceof")
            && let Some(at) = self.operator(it.left.span().end, it.right.span().start, operator)
        {
            self.edits
                .open(it.span.start, format!(" __weigh.binary(\"{operator}\","));
            let end = at + u32::try_from(operator.len()).unwrap_or(0);
            self.edits.replace(at, end, ",".to_owned());
            self.edits.close(it.span.end);
        }
        walk::walk_binary_expression(self, it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        let operator = it.operator.as_str();
        let is_number = matches!(
            it.argument,
            Expression::NumericLiteral(_) | Expression::BigIntLiteral(_)
        );
        match (operator, &it.argument) {
            ("delete" | "void", _) => {
                // The operand of `delete` is a place and no value.
                if let Expression::ComputedMemberExpression(member) = &it.argument {
                    self.visit_expression(&member.object);
                    self.visit_expression(&member.expression);
                    return;
                }
            }
            // The name may not exist.
            ("typeof", Expression::Identifier(name)) => {
                let name = name.name;
                let text = format!(
                    " __weigh.unary(\"typeof\",typeof {name}===\"undefined\"?undefined:{name})"
                );
                self.edits.replace(it.span.start, it.span.end, text);
                return;
            }
            _ if !is_number => {
                let end = it.span.start + u32::try_from(operator.len()).unwrap_or(0);
                self.edits.replace(
                    it.span.start,
                    end,
                    format!(" __weigh.unary(\"{operator}\","),
                );
                self.edits.close(it.span.end);
            }
            _ => {}
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_logical_expression(&mut self, it: &LogicalExpression<'a>) {
        self.wrap(it.left.span(), "left");
        walk::walk_logical_expression(self, it);
    }

    fn visit_conditional_expression(&mut self, it: &ConditionalExpression<'a>) {
        self.wrap(it.test.span(), "truth");
        walk::walk_conditional_expression(self, it);
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.wrap(it.test.span(), "truth");
        walk::walk_if_statement(self, it);
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.wrap(it.test.span(), "truth");
        walk::walk_while_statement(self, it);
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.wrap(it.test.span(), "truth");
        walk::walk_do_while_statement(self, it);
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        if let Some(test) = &it.test {
            self.wrap(test.span(), "truth");
        }
        walk::walk_for_statement(self, it);
    }

    fn visit_switch_statement(&mut self, it: &SwitchStatement<'a>) {
        self.wrap(it.discriminant.span(), "plain");
        walk::walk_switch_statement(self, it);
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        let operator = it.operator.as_str();
        let own = operator.trim_end_matches('=');
        let is_plain = match &it.left {
            AssignmentTarget::AssignmentTargetIdentifier(_) => true,
            AssignmentTarget::StaticMemberExpression(member) => {
                matches!(
                    member.object,
                    Expression::Identifier(_) | Expression::ThisExpression(_)
                )
            }
            _ => false,
        };
        if is_plain
            && !matches!(own, "" | "&&" | "||" | "??")
            && let Some(at) = self.operator(it.left.span().end, it.right.span().start, operator)
        {
            let left = self.slice(it.left.span());
            let end = at + u32::try_from(operator.len()).unwrap_or(0);
            self.edits
                .replace(at, end, format!("= __weigh.binary(\"{own}\",{left},"));
            self.edits.close(it.span.end);
        }
        walk::walk_assignment_expression(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let (BindingPattern::ObjectPattern(pattern), Some(Expression::Identifier(value))) =
            (&it.id, &it.init)
            && value.name == "__ENV"
        {
            let has_default =
                |value: &BindingPattern<'_>| matches!(value, BindingPattern::AssignmentPattern(_));
            let names = pattern
                .properties
                .iter()
                .filter(|it| has_default(&it.value));
            let names = names
                .filter_map(|it| it.key.name())
                .map(|name| format!("{name:?}"));
            let list = names.collect::<Vec<_>>().join(",");
            self.edits.replace(
                value.span.start,
                value.span.end,
                format!("__weigh.environment([{list}])"),
            );
            self.visit_binding_pattern(&it.id);
            return;
        }
        walk::walk_variable_declarator(self, it);
    }
}
