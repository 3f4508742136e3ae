//! One group's share of the linked kernels: the functions and globals that its exports reach, and nothing else.
//!
//! LLVM would drop the rest as well, but only after reading the kernels of all groups once for each group.
//!
//! Like [`ir`](crate::ir) this reads what `llvm-link -S` prints: everything at the top level is one line, but functions
//! with a body, which end with a line `}`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::ir::{comment_length, global_token, items, plain_name, split_top_level, string_length};

/// Textual IR with an index of what uses what.
#[derive(Debug)]
pub(crate) struct Module {
    text: String,
    /// Lines that every part needs: layout, triple, types, comdats, attributes.
    common: Vec<Range<usize>>,
    /// Functions, globals and aliases, in the order of the text.
    symbols: Vec<Part>,
    by_name: HashMap<String, usize>,
    /// Lists such as `!llvm.module.flags`, which belong to the whole module.
    named_metadata: Vec<Part>,
    metadata: BTreeMap<u64, Part>,
}

/// A piece of the text, and what it mentions.
#[derive(Debug, Default)]
struct Part {
    text: Range<usize>,
    symbols: Vec<usize>,
    metadata: Vec<u64>,
    /// Kept in every part of the module, mentioned or not.
    always: bool,
}

/// A reference on a line of IR.
enum Mention<'a> {
    /// `@name`
    Symbol(&'a str),
    /// `!7`
    Metadata(u64),
}

/// Calls `found` for every reference in an item, in order. Strings and comments hold none.
fn mentions<'a>(item: &'a str, mut found: impl FnMut(Mention<'a>)) {
    let bytes = item.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += string_length(&item[at..]),
            b';' => at += comment_length(&item[at..]),
            b'@' => match global_token(&item[at..]) {
                Some(token) => {
                    found(Mention::Symbol(token));
                    at += token.len();
                }
                None => at += 1,
            },
            b'!' => {
                let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                if let Ok(number) = item[at + 1..at + 1 + digits].parse() {
                    found(Mention::Metadata(number));
                }
                at += 1 + digits;
            }
            _ => at += 1,
        }
    }
}

/// The number of a metadata node's definition, `!7 = ...`.
fn metadata_number(line: &str) -> Option<u64> {
    line.strip_prefix('!')?.split_once(" = ")?.0.parse().ok()
}

/// The name that a line at the top level defines or declares.
fn symbol_name(line: &str) -> Option<&str> {
    if line.starts_with('@') {
        return global_token(line);
    }
    let mut rest = line.strip_prefix("define ").or_else(|| line.strip_prefix("declare "))?;
    // Return attributes before the name may hold strings, but no other global name.
    loop {
        let at = rest.find(['@', '"'])?;
        rest = &rest[at..];
        match rest.starts_with('@') {
            true => return global_token(rest),
            false => rest = &rest[string_length(rest)..],
        }
    }
}

/// A list that the linker makes of all modules' (`@llvm.global_ctors`): nothing mentions it.
fn is_appending(line: &str) -> bool {
    line.starts_with('@') && line.split(" = ").nth(1).is_some_and(|rest| rest.starts_with("appending "))
}

impl Module {
    /// Reads the index.
    pub(crate) fn new(text: String) -> Module {
        let (mut common, mut symbols, mut by_name) = (Vec::new(), Vec::new(), HashMap::new());
        let (mut named_metadata, mut metadata) = (Vec::new(), BTreeMap::new());
        let mut start = 0;
        for item in items(&text) {
            let text = start..start + item.len();
            start = text.end;
            if let Some(name) = symbol_name(item) {
                by_name.insert(plain_name(name).to_owned(), symbols.len());
                symbols.push(Part { text, always: is_appending(item), ..Part::default() });
            } else if let Some(number) = metadata_number(item) {
                metadata.insert(number, Part { text, ..Part::default() });
            } else if item.starts_with('!') {
                named_metadata.push(Part { text, ..Part::default() });
            } else if !item.starts_with([';', '^', '\n', '\r']) {
                // Comments, summaries for link-time optimisation and empty lines say nothing to `opt`.
                common.push(text);
            }
        }
        let parts = symbols.iter_mut().chain(&mut named_metadata).chain(metadata.values_mut());
        parts.for_each(|part| part.index(&text, &by_name));
        Module { text, common, symbols, by_name, named_metadata, metadata }
    }

    /// The module as far as `roots` reach. Exports that it does not define are left out, as `internalize` does.
    pub(crate) fn part<'a>(&self, roots: impl IntoIterator<Item = &'a String>) -> String {
        let roots = roots.into_iter().filter_map(|name| self.by_name.get(name).copied());
        let always = (0..self.symbols.len()).filter(|&at| self.symbols[at].always);
        let mut todo: Vec<usize> = roots.chain(always).collect();
        let mut kept = vec![false; self.symbols.len()];
        let mut nodes: Vec<u64> =
            self.named_metadata.iter().flat_map(|part| &part.metadata).copied().collect();
        while let Some(at) = todo.pop() {
            if !std::mem::replace(&mut kept[at], true) {
                todo.extend(&self.symbols[at].symbols);
                nodes.extend(&self.symbols[at].metadata);
            }
        }
        let mut kept_nodes = HashSet::new();
        while let Some(number) = nodes.pop() {
            if kept_nodes.insert(number) {
                nodes.extend(self.metadata.get(&number).iter().flat_map(|part| &part.metadata));
            }
        }

        let mut text = String::new();
        for range in &self.common {
            text.push_str(&self.text[range.clone()]);
        }
        for (part, _) in self.symbols.iter().zip(&kept).filter(|(_, kept)| **kept) {
            text.push_str(&self.text[part.text.clone()]);
        }
        let nodes = self.metadata.iter().filter(|(number, _)| kept_nodes.contains(number));
        for part in self.named_metadata.iter().chain(nodes.map(|(_, part)| part)) {
            let line = &self.text[part.text.clone()];
            if part.symbols.iter().all(|&at| kept[at]) {
                text.push_str(line);
            } else {
                text.push_str(&without_symbols(line, |name| {
                    self.by_name.get(name).is_some_and(|&at| kept[at])
                }));
            }
        }
        text
    }
}

impl Part {
    fn index(&mut self, text: &str, by_name: &HashMap<String, usize>) {
        mentions(&text[self.text.clone()], |mention| match mention {
            Mention::Symbol(token) => self.symbols.extend(by_name.get(plain_name(token))),
            Mention::Metadata(number) => self.metadata.push(number),
        });
        self.symbols.sort_unstable();
        self.symbols.dedup();
        self.metadata.sort_unstable();
        self.metadata.dedup();
    }
}

/// A metadata node in which operands that mention a symbol which is not `kept` are null: metadata keeps nothing alive,
/// and this is what LLVM makes of it when the symbol goes.
fn without_symbols(line: &str, kept: impl Fn(&str) -> bool) -> String {
    let lost = |operand: &str| {
        let mut lost = false;
        mentions(operand, |mention| {
            lost |= matches!(mention, Mention::Symbol(token) if !kept(plain_name(token)));
        });
        lost
    };
    let Some((open, close)) = line.find('{').zip(line.rfind('}')) else { return line.to_owned() };
    let operands = split_top_level(&line[open + 1..close]);
    let operands: Vec<&str> =
        operands.into_iter().map(|operand| if lost(operand) { "null" } else { operand }).collect();
    format!("{}{}{}", &line[..=open], operands.join(", "), &line[close..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(ir: &str, roots: &[&str]) -> String {
        let roots: Vec<String> = roots.iter().map(|&root| root.to_owned()).collect();
        Module::new(ir.to_owned()).part(&roots)
    }

    const COMMON: &str = "source_filename = \"x\"\ntarget triple = \"nvptx64-nvidia-cuda\"\n\
                          %pair = type { i32, ptr }\n$c = comdat any\nattributes #0 = { nounwind }\n";

    #[test]
    fn a_group_takes_what_it_reaches_through_functions_and_globals() {
        let k = "define ptx_kernel void @g__k(ptr %0) #0 {\n  call void @inner(ptr @table), !srcloc !2\n  ret void\n}\n";
        let inner =
            "define internal void @inner(ptr %0) {\n  %1 = load i32, ptr @\"a b, @h__k\"\n  ret void\n}\n";
        let table = "@table = private constant <{ ptr, i32 }> <{ ptr @called, i32 1 }>, align 8\n";
        let quoted = "@\"a b, @h__k\" = internal global i32 0, section \"@h__k\"\n";
        let called = "define internal void @called() personality ptr @person {\n  ret void\n}\n";
        let person = "declare i32 @person(...)\n";
        let other =
            "define ptx_kernel void @h__k() {\n  call void @inner(ptr null), !srcloc !3\n  ret void\n}\n";
        let unused = "declare void @unused()\n@lone = internal global i32 0\n";
        let ir = format!(
            "; ModuleID = 'x'\n{COMMON}\n{table}{quoted}{unused}\n; Function Attrs: nounwind @h__k\n{k}\n{other}\n\
             {inner}\n{called}\n{person}\n!2 = !{{i64 2}}\n!3 = !{{i64 3}}\n"
        );
        let expected = format!("{COMMON}{table}{quoted}{k}{inner}{called}{person}!2 = !{{i64 2}}\n");
        assert_eq!(part(&ir, &["g__k"]), expected);
        let expected = format!("{COMMON}{quoted}{other}{inner}!3 = !{{i64 3}}\n");
        assert_eq!(part(&ir, &["h__k"]), expected);
        assert_eq!(part(&ir, &["nowhere"]), COMMON);
    }

    #[test]
    fn strings_and_comments_mention_nothing() {
        let ir = "define void @k() {\n  call void asm \"// @a !1 \\22 @a\", \"~{memory}\"() ; @a !1\n  \
                  br label %\"@a\"\n\n\"@a\":                       ; preds = %0\n  ret void\n}\n";
        assert_eq!(part(&format!("@a = global i32 0\n{ir}!1 = !{{}}\n"), &["k"]), ir);
    }

    #[test]
    fn aliases_lead_to_their_targets_and_recursion_ends() {
        let ir = "@A = internal alias void (), ptr @f\n@B = alias i32, getelementptr (i8, ptr @data, i64 4)\n\
                  @data = global [2 x i32] zeroinitializer\n@lone = global i32 0\n\
                  define void @f() {\n  call void @A()\n  store i32 1, ptr @B\n  call void @f()\n  ret void\n}\n";
        let expected = ir.replace("@lone = global i32 0\n", "");
        assert_eq!(part(ir, &["f"]), expected);
        assert_eq!(
            part(ir, &["B"]),
            ir.lines().skip(1).take(2).map(|line| format!("{line}\n")).collect::<String>()
        );
    }

    #[test]
    fn metadata_is_kept_where_something_leads_to_it() {
        let k = "define void @k() {\n  %1 = load i32, ptr null, !range !4, !noundef !3\n  ret void\n}\n";
        let ir = format!(
            "{k}define void @l() {{\n  ret void, !x !9\n}}\n!llvm.module.flags = !{{!0}}\n!named = !{{!1, !2}}\n\
             !0 = !{{i32 8, !\"PIC @l !9\", i32 2}}\n!1 = !{{ptr @k, !\"kernel\", i32 1}}\n\
             !2 = distinct !{{ptr addrspace(3) @l, !\"a, {{b}}\", !3}}\n!3 = !{{}}\n!4 = !{{i32 0, i32 2, !5}}\n!5 = !{{!4}}\n\
             !9 = !{{}}\n!10 = !{{!9}}\n"
        );
        let expected = format!(
            "{k}!llvm.module.flags = !{{!0}}\n!named = !{{!1, !2}}\n!0 = !{{i32 8, !\"PIC @l !9\", i32 2}}\n\
             !1 = !{{ptr @k, !\"kernel\", i32 1}}\n!2 = distinct !{{null, !\"a, {{b}}\", !3}}\n!3 = !{{}}\n\
             !4 = !{{i32 0, i32 2, !5}}\n!5 = !{{!4}}\n"
        );
        assert_eq!(part(&ir, &["k"]), expected);
    }

    #[test]
    fn lists_of_all_modules_stay_with_what_they_name() {
        let ir = "@llvm.global_ctors = appending global [1 x ptr] [ptr @start]\n@plain = global i32 0\n\
                  declare void @start()\n";
        assert_eq!(part(ir, &[]), ir.replace("@plain = global i32 0\n", ""));
    }

    #[test]
    fn names_with_return_attributes_and_quotes() {
        let line =
            "define internal noundef range(i32 0, 2) \"x\"=\"@no\" { i8, i32 } @\"core::<T>::f\"(ptr @x) {\n";
        assert_eq!(symbol_name(line), Some("@\"core::<T>::f\""));
        assert_eq!(symbol_name("declare void @llvm.assume(i1)\n"), Some("@llvm.assume"));
        assert_eq!(symbol_name("  call void @f()\n"), None);
    }
}
