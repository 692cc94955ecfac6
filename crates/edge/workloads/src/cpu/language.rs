//! A compiler's first half: program text to a syntax tree, and a walk over it.

use std::fmt::Write;

use syn::visit::{self, Visit};
use virtbench_units::Random;

use super::kernel::Kernel;

/// Text of 150 made-up functions, parsed as Rust.
pub(super) struct Parse(String);

impl Parse {
    pub(super) fn new() -> Self {
        let mut random = Random::new(9);
        let mut text = String::new();
        for function in 0..150 {
            let [a, b, c] = [9, 99, 999].map(|bound| random.below(bound));
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "/// Step {function}.\nfn step_{function}(input: &[u64], factor: u64) -> Option<u64> {{\n\
                 let mut sum = {a}u64;\nfor (index, value) in input.iter().enumerate().filter(|(i, _)| i % {b} != 0) {{\n\
                 sum = match value {{ 0 => sum.wrapping_add({c}), 1..={b} => sum ^ factor, _ => sum * 3 + index as u64 }};\n\
                 if sum > {c} && index < input.len() - 1 {{ return Some(step_{a}(&input[index..], sum)? + 1); }}\n}}\n\
                 (sum != {b}).then_some(sum)\n}}\n"
            );
        }
        Self(text)
    }
}

impl Kernel for Parse {
    fn operation(&mut self) -> bool {
        let Ok(file) = syn::parse_file(&self.0) else { return false };
        let mut census = Census::default();
        census.visit_file(&file);
        census == KNOWN
    }
}

/// What a tree is made of.
#[derive(Debug, Default, PartialEq)]
struct Census {
    expressions: u32,
    names: u32,
    numbers: u64,
}

const KNOWN: Census = Census { expressions: 9300, names: 5700, numbers: 172_881 };

impl<'ast> Visit<'ast> for Census {
    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        self.expressions += 1;
        visit::visit_expr(self, expression);
    }

    fn visit_ident(&mut self, _: &'ast proc_macro2::Ident) {
        self.names += 1;
    }

    fn visit_lit_int(&mut self, number: &'ast syn::LitInt) {
        self.numbers += number.base10_parse::<u64>().unwrap_or(0);
    }
}
