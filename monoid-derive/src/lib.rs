//! The derive macro of warpfold-monoid.

use proc_macro::TokenStream;
use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream as TokenStream2};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, Ident, Index, Path, Type, parse_macro_input,
};

/// Implements `Plain` for a struct and checks at compile time that it may.
///
/// The struct must be `#[repr(C)]` or `#[repr(transparent)]` (a struct without fields needs neither), every field must
/// be `Plain`, and there must be no padding: where there is some, the error names the field before which it lies, its
/// size in bytes, and the field that would fill it. `LAYOUT` becomes a fingerprint of size, alignment, and every
/// field's offset and own fingerprint.
///
/// ```
/// use warpfold_monoid::Plain;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// struct Reading {
///     time: u64,
///     value: f32,
///     _pad: [u8; 4],
/// }
/// ```
///
/// # Generic structs
///
/// They are allowed; fields whose type depends on a parameter are bounded (`where Field: Plain`). Padding is looked for
/// in every instance whose `LAYOUT` is evaluated, as exporting or reducing does.
///
/// ```
/// use warpfold_monoid::Plain;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// struct Pair<K, V> { key: K, value: V }
///
/// const { <Pair<u32, f32>>::LAYOUT };
/// ```
///
/// ```compile_fail
/// # use warpfold_monoid::Plain;
/// # #[repr(C)]
/// # #[derive(Clone, Copy, Plain)]
/// # struct Pair<K, V> { key: K, value: V }
/// const BAD: u64 = <Pair<u8, f32>>::LAYOUT; // 3 bytes of padding before `value`
/// ```
///
/// # Where the trait is found
///
/// In the dependency `warpfold-monoid` of the crate that derives, under whatever name its `Cargo.toml` gives it, else in
/// `warpfold`'s module `monoid`. A crate that reaches the trait another way says so:
///
/// ```
/// # extern crate warpfold_monoid as algebra;
/// use algebra::Plain;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// #[plain(crate = ::algebra)]
/// struct Pair { key: u32, value: f32 }
/// ```
#[proc_macro_derive(Plain, attributes(plain))]
pub fn plain(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: DeriveInput) -> syn::Result<TokenStream2> {
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            return Err(Error::new(
                data.enum_token.span,
                format!(
                    "the enum `{name}` cannot be `Plain`: not every bit pattern is one of its values; keep its \
                     number in a struct (`struct {name}(u32)`) and convert where it is read"
                ),
            ));
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                format!(
                    "the union `{name}` cannot be `Plain`: bytes that its current field does not cover are not \
                     initialised; use a struct with an array of bytes or words"
                ),
            ));
        }
    };
    let repr = Repr::of(&input, fields)?;
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new(
            lifetime.span(),
            format!("`{name}` cannot be `Plain`: plain data borrows nothing, so it has no lifetimes"),
        ));
    }
    for field in fields {
        refuse(&field.ty)?;
    }
    let krate = monoid_path(&input)?;
    let checks = padding_checks(name, fields, repr);
    let members: Vec<_> = fields.members().collect();
    let layouts = fields.iter().map(|field| {
        let ty = &field.ty;
        quote_spanned!(ty.span()=> <#ty as #krate::Plain>::LAYOUT)
    });

    let mut generics = input.generics.clone();
    let generic =
        generics.params.iter().any(|param| matches!(param, GenericParam::Type(_) | GenericParam::Const(_)));
    let typed: Vec<Ident> = generics.type_params().map(|param| param.ident.clone()).collect();
    if generic {
        let clause = generics.make_where_clause();
        for param in &typed {
            clause.predicates.push(syn::parse_quote!(#param: 'static));
        }
        for field in fields.iter().filter(|field| mentions(field, &typed)) {
            let ty = &field.ty;
            clause.predicates.push(syn::parse_quote!(#ty: #krate::Plain));
        }
        clause.predicates.push(syn::parse_quote!(
            Self: ::core::marker::Copy + ::core::marker::Send + ::core::marker::Sync
        ));
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let now = if generic {
        quote!()
    } else {
        quote!(
            const _: u64 = <#name as #krate::Plain>::LAYOUT;
        )
    };
    Ok(quote! {
        // SAFETY: `repr(C)` or `repr(transparent)`, plain fields, and `LAYOUT` compiles only without padding.
        #[automatically_derived]
        #[allow(clippy::undocumented_unsafe_blocks)]
        unsafe impl #impl_generics #krate::Plain for #name #type_generics #where_clause {
            const LAYOUT: u64 = {
                #checks
                #krate::fingerprint(&[
                    ::core::mem::size_of::<Self>() as u64,
                    ::core::mem::align_of::<Self>() as u64,
                    #(::core::mem::offset_of!(Self, #members) as u64, #layouts,)*
                ])
            };
        }
        #now
    })
}

/// What a struct's attributes say about its layout.
#[derive(Clone, Copy, PartialEq)]
enum Repr {
    C,
    Transparent,
}

impl Repr {
    fn of(input: &DeriveInput, fields: &Fields) -> syn::Result<Repr> {
        let mut found = None;
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("C") {
                    found = Some(Repr::C);
                } else if meta.path.is_ident("transparent") {
                    found = Some(Repr::Transparent);
                } else if meta.input.peek(syn::token::Paren) {
                    // align(N), packed(N): what they do to the layout shows in the offsets.
                    let content;
                    syn::parenthesized!(content in meta.input);
                    content.parse::<TokenStream2>()?;
                }
                Ok(())
            })?;
        }
        match found {
            Some(repr) => Ok(repr),
            None if fields.is_empty() => Ok(Repr::C),
            None => Err(Error::new(
                input.ident.span(),
                format!(
                    "`{}` needs `#[repr(C)]` (or `#[repr(transparent)]`) to be `Plain`: without it the compilers for \
                     host and device may order its fields differently",
                    input.ident
                ),
            )),
        }
    }
}

/// Field types that can be told from their look, with a better message than the missing trait gives.
fn refuse(ty: &Type) -> syn::Result<()> {
    let why = match ty {
        Type::Array(array) => return refuse(&array.elem),
        Type::Group(group) => return refuse(&group.elem),
        Type::Paren(paren) => return refuse(&paren.elem),
        Type::Reference(_) => {
            "a reference is not plain data: the device cannot follow it; hold the value itself"
        }
        Type::Ptr(_) => {
            "a pointer is not plain data: it means nothing on the other side; hold the value itself, or an index"
        }
        Type::FnPtr(_) | Type::TraitObject(_) | Type::ImplTrait(_) => {
            "code is not plain data: make the function a method of a type, and the type a parameter"
        }
        Type::Slice(_) => "a slice has no size of its own: use an array `[T; N]`",
        Type::Tuple(tuple) if !tuple.elems.is_empty() => {
            "a tuple has no layout that two compilers agree on: use a `#[repr(C)]` struct"
        }
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, why))
}

/// Does the field's type depend on one of the parameters?
fn mentions(field: &Field, params: &[Ident]) -> bool {
    fn any(tokens: TokenStream2, params: &[Ident]) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => params.contains(&ident),
            proc_macro2::TokenTree::Group(group) => any(group.stream(), params),
            _ => false,
        })
    }
    let ty = &field.ty;
    any(quote!(#ty), params)
}

/// Statements that do not compile where the struct has padding, each at the field that it lies before.
fn padding_checks(name: &Ident, fields: &Fields, repr: Repr) -> TokenStream2 {
    if repr == Repr::Transparent {
        // One field with a size, and it fills the struct: the language says so.
        return quote!();
    }
    let mut checks = TokenStream2::new();
    let mut end = quote!(0usize);
    for (i, (field, member)) in fields.iter().zip(fields.members()).enumerate() {
        let shown = match &field.ident {
            Some(ident) => format!("`{ident}`"),
            None => format!("`{}`", Index::from(i).index),
        };
        if i > 0 {
            checks.extend(check(
                &format!("before its field {shown}"),
                name,
                quote!(::core::mem::offset_of!(Self, #member) - (#end)),
                field.span(),
            ));
        }
        let ty = &field.ty;
        end = quote!(::core::mem::offset_of!(Self, #member) + ::core::mem::size_of::<#ty>());
    }
    checks.extend(check("at its end", name, quote!(::core::mem::size_of::<Self>() - (#end)), name.span()));
    checks
}

/// A statement that does not compile unless `bytes`, padding at that place, is 0.
fn check(place: &str, name: &Ident, bytes: TokenStream2, span: Span) -> TokenStream2 {
    let message = |bytes: &str, field: &str| {
        format!(
            "`{name}` cannot be `Plain`: it has {bytes} of padding {place}; put the larger fields first, or fill the \
             gap with a field such as `_pad: {field}`"
        )
    };
    let one = message("1 byte", "u8");
    let arms = (2..8usize).map(|n| {
        let text = message(&format!("{n} bytes"), &format!("[u8; {n}]"));
        quote_spanned!(span=> #n => ::core::panic!(#text),)
    });
    let more = message("8 or more bytes", "[u8; N]");
    quote_spanned! {span=>
        match #bytes {
            0 => {}
            1 => ::core::panic!(#one),
            #(#arms)*
            _ => ::core::panic!(#more),
        }
    }
}

/// The path of the crate that holds the trait, as the deriving crate can name it.
fn monoid_path(input: &DeriveInput) -> syn::Result<TokenStream2> {
    let mut given = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("plain")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("the option is `crate = ::path::to::warpfold_monoid`"));
            }
            if given.replace(meta.value()?.call(Path::parse_mod_style)?).is_some() {
                return Err(meta.error("given twice"));
            }
            Ok(())
        })?;
    }
    if let Some(path) = given {
        return Ok(quote!(#path));
    }
    let found = |package, fallback: &str| match crate_name(package) {
        Ok(FoundCrate::Name(name)) => Some(Ident::new(&name, Span::call_site())),
        // The package's own examples, tests and doc tests see it under its name; so does its library, which says
        // `extern crate self`.
        Ok(FoundCrate::Itself) => Some(Ident::new(fallback, Span::call_site())),
        Err(_) => None,
    };
    if let Some(krate) = found("warpfold-monoid", "warpfold_monoid") {
        return Ok(quote!(::#krate));
    }
    if let Some(krate) = found("warpfold", "warpfold") {
        return Ok(quote!(::#krate::monoid));
    }
    Err(Error::new(
        input.ident.span(),
        "`derive(Plain)` finds neither `warpfold-monoid` nor `warpfold` among this crate's dependencies: add one, or name \
         the path that leads there, `#[plain(crate = ::some::path)]`",
    ))
}
