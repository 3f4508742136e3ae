//! Procedural macros of warpfold-simt.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, LitInt, ReturnType, Safety, Token, parse_macro_input};

/// The options of [`macro@kernel`].
#[derive(Default)]
struct KernelOptions {
    max_threads: Option<u32>,
    min_blocks: Option<u32>,
}

impl Parse for KernelOptions {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let (mut options, span) = (KernelOptions::default(), input.span());
        for option in Punctuated::<KernelOption, Token![,]>::parse_terminated(input)? {
            let place = match option.name.to_string().as_str() {
                "max_threads" => &mut options.max_threads,
                "min_blocks" => &mut options.min_blocks,
                _ => {
                    return Err(Error::new(
                        option.name.span(),
                        "the options are `max_threads` and `min_blocks`",
                    ));
                }
            };
            let value = option.value.base10_parse()?;
            if !(1..=1024).contains(&value) {
                return Err(Error::new(option.value.span(), "from 1 to 1024"));
            }
            if place.replace(value).is_some() {
                return Err(Error::new(option.name.span(), "given twice"));
            }
        }
        if let (None, Some(_)) = (options.max_threads, options.min_blocks) {
            return Err(Error::new(span, "`min_blocks` means something only beside `max_threads`"));
        }
        Ok(options)
    }
}

struct KernelOption {
    name: Ident,
    value: LitInt,
}

impl Parse for KernelOption {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(KernelOption { name, value: input.parse()? })
    }
}

/// Makes a function a kernel entry.
///
/// Built for the device it becomes a `ptx-kernel` with an unmangled name. Built for the host it stays the function it
/// is, to be run by the simulator. Parameters are `Copy`; a kernel returns nothing and is `unsafe`, because its caller
/// answers for the memory that its pointers name.
///
/// `#[kernel(max_threads = 512, min_blocks = 2)]` bounds the block size and asks for registers to fit that many blocks
/// on a multiprocessor (`.maxntid`, `.minnctapersm`). rustc cannot say this, so the device build carries it as an
/// exported `static <kernel>__launch_bounds: u32 = max_threads | min_blocks << 16`, for the PTX builder to turn into
/// directives.
///
/// ```
/// use warpfold_simt::prelude::*;
///
/// #[kernel(max_threads = 256)]
/// pub unsafe fn fill(out: *mut u32, n: usize, value: u32) {
///     let i = thread::index_1d() as usize;
///     if i < n {
///         // SAFETY: `i` is within the `n` elements, and each thread has its own.
///         unsafe { global::store(out.add(i), value) }
///     }
/// }
/// ```
///
/// A parameter that is not `Copy` does not compile:
///
/// ```compile_fail,E0277
/// #[warpfold_simt::kernel]
/// pub unsafe fn owns(values: Vec<f32>) {}
/// ```
///
/// A crate that is built for the device enables the calling convention:
/// `#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]`.
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options as KernelOptions);
    let item = parse_macro_input!(item as ItemFn);
    expand(options, item).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(options: KernelOptions, item: ItemFn) -> syn::Result<TokenStream2> {
    let signature = &item.sig;
    if !matches!(signature.safety, Safety::Unsafe(_)) {
        return Err(Error::new(signature.fn_token.span(), "a kernel is an `unsafe fn`"));
    }
    if let ReturnType::Type(..) = signature.output {
        return Err(Error::new(signature.output.span(), "a kernel returns nothing"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "a kernel is not generic: let it call generic code",
        ));
    }
    if let Some(token) = &signature.asyncness {
        return Err(Error::new(token.span(), "a kernel is not `async`"));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new(abi.span(), "`#[kernel]` sets the calling convention itself"));
    }
    let mut copies = TokenStream2::new();
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => return Err(Error::new(receiver.span(), "a kernel is not a method")),
            FnArg::Typed(argument) => {
                let ty = &argument.ty;
                copies.extend(quote_spanned! { ty.span() => copy::<#ty>(); });
            }
        }
    }

    let ItemFn { attrs, vis, sig, block, .. } = &item;
    let mut device = sig.clone();
    device.abi = Some(syn::parse_quote!(extern "ptx-kernel"));
    let bounds = options.max_threads.map(|threads| {
        let value = threads | options.min_blocks.unwrap_or(0) << 16;
        let name = format_ident!("{}__launch_bounds", sig.ident);
        quote! {
            #[cfg(target_arch = "nvptx64")]
            #[doc(hidden)]
            #[allow(non_upper_case_globals)]
            #[unsafe(no_mangle)]
            pub static #name: u32 = #value;
        }
    });
    Ok(quote! {
        const _: () = {
            fn copy<T: Copy>() {}
            #[allow(dead_code, clippy::extra_unused_lifetimes)]
            fn parameters_are_copy() { #copies }
        };
        #bounds
        #[cfg(target_arch = "nvptx64")]
        #(#attrs)*
        #[unsafe(no_mangle)]
        #[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
        #vis #device #block
        #[cfg(not(target_arch = "nvptx64"))]
        #(#attrs)*
        #[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
        #vis #sig #block
    })
}

#[cfg(test)]
mod tests {
    //! What is refused, and in which words: rustc shows them at the place they point to.

    use super::*;

    /// The outcome of the attribute on an item, as the compiler would get it.
    fn kernel(options: &str, item: &str) -> Result<String, String> {
        let expansion = syn::parse_str(options).and_then(|options| expand(options, syn::parse_str(item)?));
        expansion.map(|tokens| tokens.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn signatures_that_no_kernel_can_have() {
        for (item, message) in [
            ("pub fn k(out: *mut f32) {}", "a kernel is an `unsafe fn`"),
            ("pub unsafe fn k() -> u32 { 0 }", "a kernel returns nothing"),
            ("pub unsafe fn k<T>(out: *mut T) {}", "a kernel is not generic: let it call generic code"),
            ("pub unsafe fn k(&self) {}", "a kernel is not a method"),
            ("pub async unsafe fn k() {}", "a kernel is not `async`"),
            ("pub unsafe extern \"C\" fn k() {}", "`#[kernel]` sets the calling convention itself"),
        ] {
            assert_eq!(kernel("", item), Err(message.to_owned()), "{item}");
        }
    }

    #[test]
    fn options_that_mean_nothing() {
        let (range, alone) = ("from 1 to 1024", "`min_blocks` means something only beside `max_threads`");
        for (options, message) in [
            ("max_threads = 0", range),
            ("max_threads = 1025", range),
            ("max_threads = 64, min_blocks = 0", range),
            ("min_blocks = 2", alone),
            ("max_threads = 64, max_threads = 64", "given twice"),
            ("threads = 64", "the options are `max_threads` and `min_blocks`"),
        ] {
            assert_eq!(kernel(options, "unsafe fn k() {}"), Err(message.to_owned()), "{options}");
        }
    }

    #[test]
    fn the_device_gets_an_entry_and_its_bounds_and_the_host_the_function() {
        let plain = kernel("", "pub unsafe fn k(out: *mut f32) { body() }").unwrap();
        assert!(
            plain.contains("pub unsafe extern \"ptx-kernel\" fn k (out : * mut f32) { body () }"),
            "{plain}"
        );
        assert!(plain.contains("pub unsafe fn k (out : * mut f32) { body () }"), "{plain}");
        assert!(plain.contains("copy :: < * mut f32 >"), "{plain}");
        assert!(!plain.contains("launch_bounds"), "{plain}");
        for (options, value) in
            [("max_threads = 512", 512), ("max_threads = 512, min_blocks = 2", 512 | 2 << 16)]
        {
            let bounded = kernel(options, "unsafe fn k() {}").unwrap();
            assert!(bounded.contains(&format!("static k__launch_bounds : u32 = {value}u32")), "{bounded}");
        }
    }
}
