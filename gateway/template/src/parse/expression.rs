//! Parses expressions: operators by precedence, calls, and paths into variables.

use super::{Parsed, Parser, constant};
use crate::expression::{Function, Node, Operator, Step, Target};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Node> {
        self.deeper(|it| it.binary(0))
    }

    fn binary(&mut self, level: usize) -> Parsed<Node> {
        let Some(operators) = Operator::LEVELS.get(level) else {
            return self.defaulted();
        };
        // Each level parses the tighter one first, so precedence is the depth of the recursion.
        let mut left = self.binary(level + 1)?;
        loop {
            self.space();
            // `in` must be a whole word, because `index` also begins with it. `<=` precedes `<` in the list.
            let found = operators.iter().find(|(token, operator)| match operator {
                Operator::In => self.word() == *token,
                _ => self.rest().starts_with(token),
            });
            let Some((token, operator)) = found else {
                return Ok(left);
            };
            self.at += token.len();
            let right = self.binary(level + 1)?;
            left = Node::Binary(*operator, Box::new(left), Box::new(right));
        }
    }

    fn defaulted(&mut self) -> Parsed<Node> {
        let mut left = self.primary()?;
        loop {
            // Binds tighter than comparison: `$a ?? 1 == 1` compares the default.
            self.space();
            if !self.takes("??") {
                return Ok(left);
            }
            let right = self.primary()?;
            left = Node::Default(Box::new(left), Box::new(right));
        }
    }

    fn primary(&mut self) -> Parsed<Node> {
        self.space();
        match self.rest().as_bytes().first() {
            Some(b'(') => {
                self.at += 1;
                let inner = self.expression()?;
                self.need(")")?;
                Ok(inner)
            }
            Some(b'\'') => {
                let inside = &self.rest()[1..];
                let Some(length) = inside.find('\'') else {
                    return self.expected("the `'` at the end of a string");
                };
                self.at += length + 2;
                Ok(Node::Plain(inside[..length].to_owned()))
            }
            Some(b'$') => {
                self.at += 1;
                let word = self.word();
                self.at += word.len();
                self.path(format!("${word}"))
            }
            Some(b'"' | b'[' | b'{' | b'-' | b'0'..=b'9') => self.value(),
            _ => self.named(),
        }
    }

    fn named(&mut self) -> Parsed<Node> {
        let word = self.word();
        match word {
            "" => self.expected("an expression"),
            "true" | "false" | "null" => {
                self.at += word.len();
                Ok(constant(word))
            }
            _ => match Function::named(word) {
                Some(function) => {
                    self.at += word.len();
                    self.call(function)
                }
                None => {
                    self.at += word.len();
                    // Variables of a range have no `$`, so any other word can be one.
                    self.path(word.to_owned())
                }
            },
        }
    }

    fn call(&mut self, function: Function) -> Parsed<Node> {
        self.space();
        let mut arguments = Vec::new();
        if self.takes("(") {
            loop {
                arguments.push(self.expression()?);
                self.space();
                if !self.takes(",") {
                    break;
                }
            }
            self.need(")")?;
        } else {
            // Without parentheses, one primary is the argument: `not $a && $b` is `(not $a) && $b`. The depth
            // is counted, because `not not not …` recurses without passing through an expression.
            arguments.push(self.deeper(Self::primary)?);
        }
        let (least, most) = function.arity();
        if arguments.len() < least || arguments.len() > most {
            let word = function.name();
            return self.expected(format!("{least} to {most} arguments for `{word}`"));
        }
        Ok(Node::Call(function, arguments))
    }

    fn path(&mut self, variable: String) -> Parsed<Node> {
        let mut steps = Vec::new();
        loop {
            let start = self.at;
            // `??` is another operator.
            let is_optional = !self.rest().starts_with("??") && self.takes("?");
            let to = if self.takes(".") {
                let word = self.word();
                if word.is_empty() {
                    return self
                        .expected("a key after `.`; write `['key']` for one that is no word");
                }
                self.at += word.len();
                Target::Key(word.to_owned())
            } else if self.takes("[") {
                let inner = self.expression()?;
                self.need("]")?;
                Target::Computed(Box::new(inner))
            } else {
                // A `?` directly after the variable says that there may be no such variable.
                let may_be_missing = is_optional && steps.is_empty();
                if !may_be_missing {
                    self.at = start;
                }
                return Ok(Node::Path {
                    variable,
                    may_be_missing,
                    steps,
                });
            };
            steps.push(Step { is_optional, to });
        }
    }
}
