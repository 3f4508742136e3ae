//! What is done to LLVM's textual IR between rustc and `opt`: shared statics change address space, every function
//! gets one target CPU, and the entry points and globals of a module are found.
//!
//! The input is what `llvm-link -S` prints: one global, alias, attribute group or instruction on a line, quotes inside
//! strings escaped as `\22`.

use std::collections::{BTreeMap, HashMap};

use crate::Error;

/// Statics in this section are per-block shared memory.
pub(crate) const SHARED_SECTION: &str = ".shared";

/// IR ready for `opt`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rewritten {
    pub text: String,
    /// Shared statics that asked for zeroed memory, which shared memory is not.
    pub zeroed: Vec<String>,
}

/// What stands at the top level, line ends included: single lines, and functions with their bodies.
pub(crate) fn items(ir: &str) -> impl Iterator<Item = &str> {
    let mut rest = ir;
    std::iter::from_fn(move || {
        let end = match rest.starts_with("define ") {
            true => body_end(rest),
            false => Some(0),
        };
        let length = end.and_then(|end| Some(end + rest[end..].find('\n')? + 1)).unwrap_or(rest.len());
        let (item, after) = rest.split_at(length);
        rest = after;
        (!item.is_empty()).then_some(item)
    })
}

/// The place behind the brace that ends a function: the first at the start of a line. Line by line, for a search of two
/// characters is slow where it is not optimised, as build scripts are not.
fn body_end(function: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += function[at..].find('\n')? + 1;
        if function[at..].starts_with('}') {
            return Some(at + 1);
        }
    }
}

/// The first line of an item, without its end.
fn first_line(item: &str) -> &str {
    item.split('\n').next().unwrap_or(item)
}

/// A global name, as written (`@x` or `@"x y"`), at the start of `text`.
pub(crate) fn global_token(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('@')?;
    let length = match rest.strip_prefix('"') {
        Some(quoted) => quoted.find('"')? + 2,
        None => rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-$._".contains(c))).unwrap_or(rest.len()),
    };
    (length > 0).then(|| &text[..length + 1])
}

/// The name without `@` and quotes.
pub(crate) fn plain_name(token: &str) -> &str {
    token.trim_start_matches('@').trim_matches('"')
}

/// The byte length of the string literal that starts at `text` (with its quotes).
pub(crate) fn string_length(text: &str) -> usize {
    text[1..].find('"').map_or(text.len(), |end| end + 2)
}

/// The byte length of the comment that starts at `text`, without the line's end.
pub(crate) fn comment_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// Splits at commas that stand outside brackets and strings.
pub(crate) fn split_top_level(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start, mut at) = (Vec::new(), 0usize, 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += string_length(&text[at..]);
                continue;
            }
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(text[start..].trim());
    parts
}

/// Splits `text` after its first word, bracketed group or string: a type, or a qualifier such as `addrspace(3)`.
fn split_item(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (mut depth, mut at) = (0usize, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += string_length(&text[at..]);
                continue;
            }
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => break,
            b',' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    (&text[..at], text[at..].trim_start())
}

/// A global variable's definition, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Global<'a> {
    name: &'a str,
    linkage: Vec<&'a str>,
    kind: &'a str,
    value_type: &'a str,
    initializer: &'a str,
    attributes: Vec<&'a str>,
}

impl<'a> Global<'a> {
    /// Reads `@name = qualifiers (global|constant) type initializer, attributes`; `None` for any other line.
    fn parse(line: &'a str) -> Option<Global<'a>> {
        let name = global_token(line)?;
        let line = line.trim_end();
        let mut rest = line[name.len()..].strip_prefix(" = ")?;
        let mut linkage = Vec::new();
        let kind = loop {
            let (item, after) = split_item(rest);
            rest = after;
            match item {
                "global" | "constant" => break item,
                "alias" | "ifunc" | "" => return None,
                qualifier => linkage.push(qualifier),
            }
        };
        let (value_type, after) = split_item(rest);
        let mut parts = split_top_level(after).into_iter();
        let initializer = parts.next().unwrap_or("");
        Some(Global { name, linkage, kind, value_type, initializer, attributes: parts.collect() })
    }

    fn is_shared(&self) -> bool {
        self.attributes
            .iter()
            .any(|part| part.strip_prefix("section ").is_some_and(|s| s.trim_matches('"') == SHARED_SECTION))
    }

    fn is_local(&self) -> bool {
        self.linkage.iter().any(|word| matches!(*word, "internal" | "private"))
    }

    fn is_declaration(&self) -> bool {
        self.linkage.iter().any(|word| matches!(*word, "external" | "extern_weak"))
    }

    /// The definition in address space 3. A static of no size is the block's dynamic shared memory.
    fn to_shared(&self) -> String {
        let align = self.attributes.iter().find(|part| part.starts_with("align "));
        let align = align.map_or(String::new(), |align| format!(", {align}"));
        if matches!(self.value_type, "[0 x i8]" | "{}" | "<{}>" | "{ }") {
            format!("{} = external addrspace(3) global [0 x i8]{align}", self.name)
        } else {
            format!("{} = internal addrspace(3) global {} undef{align}", self.name, self.value_type)
        }
    }
}

/// What memory a static asks to start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Undefined,
    Zero,
    Value,
}

/// Classifies an initializer. Anything that is not provably undefined or zero counts as a value.
fn start_of(initializer: &str) -> Start {
    let mut start = Start::Undefined;
    let mut words = initializer
        .split(|c: char| c.is_whitespace() || "[]{}<>,()".contains(c))
        .filter(|w| !w.is_empty())
        .peekable();
    while let Some(word) = words.next() {
        match word {
            "undef" | "poison" | "x" | "half" | "bfloat" | "float" | "double" | "fp128" | "ptr" => {}
            "zeroinitializer" | "null" | "false" | "0" | "0.000000e+00" => start = Start::Zero,
            count if count.parse::<u64>().is_ok() && words.peek() == Some(&"x") => {}
            integer if integer.strip_prefix('i').is_some_and(|bits| bits.parse::<u32>().is_ok()) => {}
            _ => return Start::Value,
        }
    }
    start
}

/// Replaces global names in an item, leaving strings and comments alone.
fn replace_globals(item: &str, out: &mut String, replacement: &HashMap<&str, String>) {
    let mut at = 0;
    let bytes = item.as_bytes();
    let mut copied = 0;
    while at < bytes.len() && !replacement.is_empty() {
        match bytes[at] {
            b'"' => at += string_length(&item[at..]),
            b';' => at += comment_length(&item[at..]),
            b'@' => match global_token(&item[at..]) {
                Some(token) => {
                    if let Some(new) = replacement.get(token) {
                        out.push_str(&item[copied..at]);
                        out.push_str(new);
                        copied = at + token.len();
                    }
                    at += token.len();
                }
                None => at += 1,
            },
            _ => at += 1,
        }
    }
    out.push_str(&item[copied..]);
}

/// Drops `"key"="value"` from an attribute group.
fn without_attribute(line: &str, key: &str) -> String {
    let opening = format!("\"{key}\"=\"");
    let mut line = line.to_owned();
    while let Some(start) = line.find(&opening) {
        let value = start + opening.len();
        let end = line[value..].find('"').map_or(line.len(), |end| value + end + 1);
        let end = end + line[end..].len() - line[end..].trim_start_matches(' ').len();
        line.replace_range(start..end, "");
    }
    line
}

/// Moves `.shared` statics to address space 3, gives every function the CPU `cpu` (core was built once, for the
/// target's default) and forgets `llvm.used` lists, which would keep one group's statics alive in all others.
pub(crate) fn rewrite(ir: &str, cpu: &str) -> Result<Rewritten, Error> {
    let mut replacement = HashMap::new();
    let mut zeroed = Vec::new();
    for global in items(ir).filter_map(Global::parse).filter(Global::is_shared) {
        let space = |word: &&str| word.starts_with("addrspace(");
        if global.is_declaration() || global.linkage.iter().any(space) {
            continue;
        }
        match start_of(global.initializer) {
            Start::Undefined => {}
            Start::Zero if global.to_shared().contains(" external ") => {}
            Start::Zero => zeroed.push(plain_name(global.name).to_owned()),
            Start::Value => {
                return Err(Error::SharedInitializer {
                    name: plain_name(global.name).to_owned(),
                    initializer: global.initializer.to_owned(),
                });
            }
        }
        let cast = format!("addrspacecast (ptr addrspace(3) {} to ptr)", global.name);
        replacement.insert(global.name, cast);
    }
    // An alias of a shared static stands for the static itself; aliases of aliases settle after a few rounds.
    let aliases: Vec<(&str, &str)> = items(ir).filter_map(alias).collect();
    loop {
        let before = replacement.len();
        for (name, target) in &aliases {
            if let Some(cast) = replacement.get(target).cloned() {
                replacement.insert(name, cast);
            }
        }
        if replacement.len() == before {
            break;
        }
    }

    let mut text = String::with_capacity(ir.len() + ir.len() / 8);
    for line in items(ir) {
        if line.starts_with("@llvm.used = ") || line.starts_with("@llvm.compiler.used = ") {
            continue;
        }
        if line.starts_with("attributes #") {
            let line = without_attribute(line, "target-features");
            let had_cpu = line.contains("\"target-cpu\"");
            let line = without_attribute(&line, "target-cpu");
            match line.rfind('}') {
                Some(end) if had_cpu => {
                    text.push_str(line[..end].trim_end());
                    text.push_str(&format!(" \"target-cpu\"=\"{cpu}\" }}\n"));
                }
                _ => {
                    text.push_str(&line);
                }
            }
            continue;
        }
        if line.starts_with('@') {
            if alias(line).is_some_and(|(name, _)| replacement.contains_key(name)) {
                continue;
            }
            if let Some(global) = Global::parse(line).filter(|g| replacement.contains_key(g.name)) {
                text.push_str(&global.to_shared());
                text.push('\n');
                continue;
            }
            // The defined name must survive as it is; only the initializer may refer to shared statics.
            let name = global_token(line).map_or("", |name| name);
            text.push_str(name);
            replace_globals(&line[name.len()..], &mut text, &replacement);
            continue;
        }
        replace_globals(line, &mut text, &replacement);
    }
    Ok(Rewritten { text, zeroed })
}

/// The name and target of an alias line.
fn alias(line: &str) -> Option<(&str, &str)> {
    let name = global_token(line)?;
    let line = line.trim_end();
    let mut rest = line[name.len()..].strip_prefix(" = ")?;
    loop {
        let (item, after) = split_item(rest);
        match item {
            "alias" => {
                let target = after.rfind('@').map(|at| &after[at..])?;
                return Some((name, global_token(target)?));
            }
            "" | "global" | "constant" => return None,
            _ => rest = after,
        }
    }
}

/// The names of the kernels that a module defines under a name of their own (not a mangled one).
pub(crate) fn entries(ir: &str) -> Vec<String> {
    let mut names = Vec::new();
    for item in items(ir).filter_map(|item| item.strip_prefix("define ")) {
        let line = first_line(item);
        let Some(at) = line.find('@') else { continue };
        let is_kernel = line[..at].split_whitespace().any(|word| word == "ptx_kernel");
        if let Some(token) = is_kernel.then(|| global_token(&line[at..])).flatten() {
            let name = plain_name(token);
            if !name.starts_with("_R") && !name.starts_with("_ZN") {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// The names of the variables that a module defines and exports.
pub(crate) fn exported_globals(ir: &str) -> Vec<String> {
    let globals = items(ir).filter_map(Global::parse);
    globals
        .filter(|g| !g.is_local() && !g.is_declaration() && !g.is_shared())
        .map(|g| plain_name(g.name).to_owned())
        .filter(|name| !name.starts_with("_R") && !name.starts_with("_ZN") && !name.starts_with("llvm."))
        .collect()
}

/// The suffix of a `u32` export that allows the entry it is named after that many bytes of stack and spills.
const ALLOWANCE: &str = "__allow_stack";

/// The suffix of a `u32` export that bounds the launches of the entry it is named after: the most threads of a block,
/// and in the upper half the least number of blocks that a multiprocessor must hold. 0 bounds nothing.
const LAUNCH_BOUNDS: &str = "__launch_bounds";

/// Set where the threads are no bound, but what the entry will be launched with.
pub(crate) const UNBOUNDED: u32 = 1 << 31;

/// Stack allowances that the kernel crate exports: `static <entry>__allow_stack: u32 = bytes`.
pub(crate) fn allowances(ir: &str) -> BTreeMap<String, u32> {
    exports_of(ir, ALLOWANCE)
}

/// Launch bounds that the kernel crate exports: `static <entry>__launch_bounds: u32 = threads | blocks << 16`.
pub(crate) fn launch_bounds(ir: &str) -> BTreeMap<String, u32> {
    let mut bounds = exports_of(ir, LAUNCH_BOUNDS);
    bounds.retain(|_, bound| *bound != 0);
    bounds
}

/// The `u32` exports whose names end like this, by what stands before.
fn exports_of(ir: &str, suffix: &str) -> BTreeMap<String, u32> {
    let globals = items(ir).filter_map(Global::parse).filter(|global| !global.is_local());
    let export = |global: Global<'_>| {
        let entry = plain_name(global.name).strip_suffix(suffix)?.to_owned();
        Some((entry, little_endian_u32(global.value_type, global.initializer)?))
    };
    globals.filter_map(export).collect()
}

/// Gives entries their launch bounds, as the function attributes from which LLVM writes `.maxntid` and `.minnctapersm`.
pub(crate) fn bound_launches(ir: &str, bounds: &BTreeMap<String, u32>) -> String {
    let mut text = String::with_capacity(ir.len() + 64 * bounds.len());
    for item in items(ir) {
        let line = first_line(item);
        let name = line.strip_prefix("define ").and_then(|rest| global_token(&rest[rest.find('@')?..]));
        let bound =
            name.and_then(|name| bounds.get(plain_name(name))).filter(|bound| *bound & UNBOUNDED == 0);
        // Attributes stand between the parameters and the brace, a reference to a group of them last.
        match (bound, line.rfind(" #").or(line.rfind(" {"))) {
            (Some(bound), Some(at)) => {
                let (threads, blocks) = (bound & 0xffff, bound >> 16);
                text += &item[..at];
                text += &format!(" \"nvvm.maxntid\"=\"{threads}\"");
                if blocks > 0 {
                    text += &format!(" \"nvvm.minctasm\"=\"{blocks}\"");
                }
                text += &item[at..];
            }
            _ => text += item,
        }
    }
    text
}

/// The value of a constant that rustc wrote as `i32 5`, as bytes, or as bytes within a structure.
fn little_endian_u32(value_type: &str, initializer: &str) -> Option<u32> {
    if value_type == "i32" {
        return initializer.parse::<i64>().ok().map(|value| value as u32);
    }
    if initializer == "zeroinitializer" {
        return Some(0);
    }
    let start = initializer.find("c\"")? + 2;
    let text = &initializer[start..start + initializer[start..].find('"')?];
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'\\' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Entry points and globals that share a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub name: String,
    pub entries: Vec<String>,
    pub globals: Vec<String>,
}

/// Sorts entries into groups by what stands before the first double underscore, and gives each group the exported
/// globals named after it. Groups and names come out sorted, so builds are reproducible.
pub(crate) fn groups(mut entries: Vec<String>, globals: &[String]) -> Vec<Group> {
    entries.sort();
    entries.dedup();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in entries {
        groups.entry(group_of(&entry).to_owned()).or_default().push(entry);
    }
    let of_group = |group: &str| {
        let mine = globals.iter().filter(|name| group_of(name) == group && name.len() > group.len());
        let mut mine: Vec<String> = mine
            .filter(|name| !name.ends_with(ALLOWANCE) && !name.ends_with(LAUNCH_BOUNDS))
            .cloned()
            .collect();
        mine.sort();
        mine.dedup();
        mine
    };
    groups.into_iter().map(|(name, entries)| Group { globals: of_group(&name), name, entries }).collect()
}

/// The group that a name belongs to: a leading double underscore does not count as a separator.
fn group_of(name: &str) -> &str {
    match name.find("__") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(ir: &str) -> String {
        rewrite(ir, "sm_80").unwrap().text
    }

    #[test]
    fn a_shared_static_moves_and_every_use_is_cast() {
        let ir = "@S = internal global [128 x i8] undef, section \".shared\", align 4\n\
                  define void @f() {\n  call void @g(ptr @S, ptr noundef @S2, ptr @S)\n  ret void\n}\n";
        let out = "@S = internal addrspace(3) global [128 x i8] undef, align 4\n\
                   define void @f() {\n  call void @g(ptr addrspacecast (ptr addrspace(3) @S to ptr), ptr noundef @S2, \
                   ptr addrspacecast (ptr addrspace(3) @S to ptr))\n  ret void\n}\n";
        assert_eq!(rewritten(ir), out);
    }

    #[test]
    fn quoted_names_and_attributes_in_any_order() {
        let ir = "@\"a b, c\" = dso_local unnamed_addr global <{ [4 x i8], [8 x i8] }> undef, align 16, \
                  section \".shared\", comdat, !dbg !3\n\
                  @S.1..llvm.77 = hidden global i32 undef, comdat($x), section \".shared\"\n\
                  store i32 1, ptr @\"a b, c\", align 4\nstore i32 1, ptr @S.1..llvm.77, align 4\nload i32, ptr @S.1, align 4\n";
        let out = "@\"a b, c\" = internal addrspace(3) global <{ [4 x i8], [8 x i8] }> undef, align 16\n\
                   @S.1..llvm.77 = internal addrspace(3) global i32 undef\n\
                   store i32 1, ptr addrspacecast (ptr addrspace(3) @\"a b, c\" to ptr), align 4\n\
                   store i32 1, ptr addrspacecast (ptr addrspace(3) @S.1..llvm.77 to ptr), align 4\n\
                   load i32, ptr @S.1, align 4\n";
        assert_eq!(rewritten(ir), out);
    }

    #[test]
    fn constant_expressions_and_initializers_are_rewritten_but_strings_and_comments_are_not() {
        let ir = "@S = internal global [8 x i8] poison, section \".shared\"\n\
                  @P = internal constant ptr getelementptr (i8, ptr @S, i64 4)\n\
                  @T = private constant [2 x i8] c\"@S\"\n\
                  call void asm sideeffect \"// @S\", \"r\"(ptr @S) ; uses @S\n";
        let cast = "addrspacecast (ptr addrspace(3) @S to ptr)";
        let out = format!(
            "@S = internal addrspace(3) global [8 x i8] undef\n\
             @P = internal constant ptr getelementptr (i8, ptr {cast}, i64 4)\n\
             @T = private constant [2 x i8] c\"@S\"\n\
             call void asm sideeffect \"// @S\", \"r\"(ptr {cast}) ; uses @S\n"
        );
        assert_eq!(rewritten(ir), out);
    }

    #[test]
    fn aliases_of_shared_statics_vanish() {
        let ir = "@S = internal global i32 undef, section \".shared\", align 4\n\
                  @A = internal alias i32, ptr @S\n@B = hidden unnamed_addr alias i32, ptr @A\n\
                  @C = alias i32, ptr @other\nstore i32 0, ptr @B, align 4\nstore i32 0, ptr @C, align 4\n";
        let out = "@S = internal addrspace(3) global i32 undef, align 4\n@C = alias i32, ptr @other\n\
                   store i32 0, ptr addrspacecast (ptr addrspace(3) @S to ptr), align 4\nstore i32 0, ptr @C, align 4\n";
        assert_eq!(rewritten(ir), out);
    }

    #[test]
    fn a_shared_static_without_size_is_dynamic_shared_memory() {
        let ir = "@D = internal global [0 x i8] zeroinitializer, section \".shared\", align 16\n";
        assert_eq!(rewritten(ir), "@D = external addrspace(3) global [0 x i8], align 16\n");
        assert!(rewrite(ir, "sm_80").unwrap().zeroed.is_empty());
    }

    #[test]
    fn initial_values_of_shared_memory_are_refused() {
        let start = |value: &str| start_of(value);
        assert_eq!(start("undef"), Start::Undefined);
        assert_eq!(start("<{ [4 x i8] undef, [8 x i8] poison }>"), Start::Undefined);
        assert_eq!(start("zeroinitializer"), Start::Zero);
        assert_eq!(start("<{ [4 x i8] zeroinitializer, [4 x i8] undef }>"), Start::Zero);
        assert_eq!(start("[4 x i8] c\"\\01\\00\\00\\00\""), Start::Value);
        assert_eq!(start("<{ i32 3, i32 0 }>"), Start::Value);
        assert_eq!(start("<{ ptr @x }>"), Start::Value);
        let ir = "@S = internal global i32 5, section \".shared\"\n";
        let error = rewrite(ir, "sm_80").unwrap_err().to_string();
        assert!(error.contains("`S`") && error.contains('5'), "{error}");
        let zero =
            rewrite("@S = internal global [4 x i8] zeroinitializer, section \".shared\"\n", "sm_80").unwrap();
        assert_eq!(zero.zeroed, ["S"]);
    }

    #[test]
    fn other_sections_and_used_lists() {
        let ir = "@S = internal global i32 0, section \".sharedx\"\n\
                  @llvm.compiler.used = appending global [1 x ptr] [ptr @S], section \"llvm.metadata\"\nload i32, ptr @S\n";
        assert_eq!(rewritten(ir), "@S = internal global i32 0, section \".sharedx\"\nload i32, ptr @S\n");
    }

    #[test]
    fn functions_get_one_cpu() {
        let ir = "attributes #0 = { convergent \"target-cpu\"=\"sm_30\" \"target-features\"=\"+ptx60\" }\n\
                  attributes #1 = { nounwind \"target-features\"=\"+ptx60\" \"target-cpu\"=\"sm_90\" \"x\"=\"y\" }\n\
                  attributes #2 = { nounwind }\n";
        let out = "attributes #0 = { convergent \"target-cpu\"=\"sm_80\" }\n\
                   attributes #1 = { nounwind \"x\"=\"y\" \"target-cpu\"=\"sm_80\" }\nattributes #2 = { nounwind }\n";
        assert_eq!(rewritten(ir), out);
    }

    #[test]
    fn entries_and_globals_are_found_and_grouped() {
        let ir = "define dso_local ptx_kernel void @sum_f32__reduce_one(ptr noundef %0) unnamed_addr #0 {\n}\n\
                  define ptx_kernel void @\"sum_f32__reduce_many\"(ptr byval([8 x i8]) %0) {\n}\n\
                  define ptx_kernel void @alone() {\n}\ndefine void @helper(ptr @ptx_kernel) {\n}\n\
                  define internal ptx_kernel void @_RNvC1k3gen() {\n}\ndeclare ptx_kernel void @sum_f32__elsewhere()\n\
                  @sum_f32__descriptor = constant [4 x i8] c\"\\01\\00\\00\\00\", align 4\n\
                  @sum_f32__reduce_one__allow_stack = constant [4 x i8] c\"@\\01\\00\\00\", align 4\n\
                  @alone__allow_stack = constant i32 8\n@sum_f32__hidden = internal constant i32 4\n\
                  @sum_f32x__descriptor = constant i32 4\n@alone__descriptor = global i32 4\n";
        assert_eq!(entries(ir), ["sum_f32__reduce_one", "sum_f32__reduce_many", "alone"]);
        let found = groups(entries(ir), &exported_globals(ir));
        let expect = [
            ("alone", &["alone"][..], "alone__descriptor"),
            ("sum_f32", &["sum_f32__reduce_many", "sum_f32__reduce_one"][..], "sum_f32__descriptor"),
        ];
        assert_eq!(found.len(), expect.len());
        for (group, (name, entries, global)) in found.iter().zip(expect) {
            assert_eq!((group.name.as_str(), &group.globals[..]), (name, &[global.to_owned()][..]));
            assert_eq!(group.entries, entries);
        }
        let allowed = allowances(ir);
        assert_eq!(allowed.get("sum_f32__reduce_one"), Some(&0x140));
        assert_eq!(allowed.get("alone"), Some(&8));
    }

    #[test]
    fn launch_bounds_become_attributes() {
        let ir = "@k__launch_bounds = constant [4 x i8] c\"\\00\\02\\02\\00\", align 4\n\
                  @l__launch_bounds = constant i32 96\n\
                  @m__launch_bounds = constant [4 x i8] c\"\\00\\02\\00\\80\", align 4\n\
                  define ptx_kernel void @k(ptr byval([8 x i8]) %p) unnamed_addr #7 {\n}\n\
                  define ptx_kernel void @l() {\n}\n\
                  define ptx_kernel void @m() #7 {\n}\n\
                  call void @k()\n";
        let bounds = launch_bounds(ir);
        let expected = [("k".into(), 0x2_0200), ("l".into(), 96), ("m".into(), 512 | UNBOUNDED)];
        assert_eq!(bounds.into_iter().collect::<Vec<_>>(), expected);
        let bounded = bound_launches(ir, &launch_bounds(ir));
        let mut lines = bounded.lines().skip(3).filter(|line| *line != "}");
        let k = "define ptx_kernel void @k(ptr byval([8 x i8]) %p) unnamed_addr \
                 \"nvvm.maxntid\"=\"512\" \"nvvm.minctasm\"=\"2\" #7 {";
        assert_eq!(lines.next(), Some(k));
        assert_eq!(lines.next(), Some("define ptx_kernel void @l() \"nvvm.maxntid\"=\"96\" {"));
        assert_eq!(lines.next(), Some("define ptx_kernel void @m() #7 {"));
        assert_eq!(lines.next(), Some("call void @k()"));
        assert!(groups(entries(ir), &exported_globals(ir)).iter().all(|group| group.globals.is_empty()));
    }

    #[test]
    fn names_without_a_group() {
        assert_eq!(group_of("__odd"), "__odd");
        assert_eq!(group_of("a_b"), "a_b");
        assert_eq!(group_of("a__b__c"), "a");
    }
}
