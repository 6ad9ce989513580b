//! Functions of the host that a script's surroundings call: files, digests and base64.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use md5::{Digest as _, Md5};
use ring::{digest, hmac};
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Module, Object, Result, TypedArray, Value};

use super::Shared;
use super::modules::{local, plain};
use crate::files::Unreadable;
use crate::source;

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The functions, as an object for the script's surroundings.
pub(super) fn functions<'js>(ctx: &Ctx<'js>, shared: &Rc<RefCell<Shared>>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set(
        "base64",
        Function::new(ctx.clone(), |data: Value<'js>| encoded(&data))?,
    )?;
    native.set("unbase64", Function::new(ctx.clone(), decoded)?)?;
    native.set(
        "text",
        Function::new(ctx.clone(), |data: Value<'js>| text(&data))?,
    )?;
    native.set("joined", Function::new(ctx.clone(), joined)?)?;
    native.set("digest", Function::new(ctx.clone(), digested)?)?;
    native.set("hmac", Function::new(ctx.clone(), signed)?)?;
    let own = shared.clone();
    let open = move |ctx: Ctx<'js>, path: String, is_binary: bool, base: String| {
        opened(&ctx, &own, Path::new(&path), is_binary, &base)
    };
    native.set("open", Function::new(ctx.clone(), open)?)?;
    let own = shared.clone();
    let require =
        move |ctx: Ctx<'js>, path: String, base: String| required(&ctx, &own, &path, &base);
    native.set("require", Function::new(ctx.clone(), require)?)?;
    Ok(native)
}

/// The bytes of a text, or of a list of numbers.
fn bytes(data: &Value<'_>) -> Result<Vec<u8>> {
    if let Some(text) = data.as_string() {
        return Ok(text.to_string()?.into_bytes());
    }
    data.get()
}

fn encoded(data: &Value<'_>) -> Result<String> {
    Ok(STANDARD.encode(bytes(data)?))
}

fn decoded<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    match LENIENT.decode(text.as_bytes()) {
        Ok(bytes) => TypedArray::new(ctx, bytes),
        Err(error) => Err(Exception::throw_message(
            &ctx,
            &format!("no base64: {error}"),
        )),
    }
}

fn text(data: &Value<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(data)?).into_owned())
}

/// The bytes of all parts, as base64.
fn joined(parts: Vec<Value<'_>>) -> Result<String> {
    let mut all = Vec::new();
    for part in &parts {
        all.extend(bytes(part)?);
    }
    Ok(STANDARD.encode(all))
}

fn digested<'js>(
    ctx: Ctx<'js>,
    algorithm: String,
    data: Value<'js>,
) -> Result<TypedArray<'js, u8>> {
    if algorithm == "md5" {
        return TypedArray::new(ctx, Md5::digest(bytes(&data)?).to_vec());
    }
    let algorithm = match algorithm.as_str() {
        "sha1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "sha384" => &digest::SHA384,
        "sha512" => &digest::SHA512,
        _ => &digest::SHA256,
    };
    let found = digest::digest(algorithm, &bytes(&data)?);
    TypedArray::new(ctx, found.as_ref().to_vec())
}

fn signed<'js>(
    ctx: Ctx<'js>,
    algorithm: String,
    key: Value<'js>,
    data: Value<'js>,
) -> Result<TypedArray<'js, u8>> {
    if algorithm == "md5" {
        return TypedArray::new(ctx, hmac_md5(&bytes(&key)?, &bytes(&data)?));
    }
    let algorithm = match algorithm.as_str() {
        "sha1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "sha384" => hmac::HMAC_SHA384,
        "sha512" => hmac::HMAC_SHA512,
        _ => hmac::HMAC_SHA256,
    };
    let key = hmac::Key::new(algorithm, &bytes(&key)?);
    let found = hmac::sign(&key, &bytes(&data)?);
    TypedArray::new(ctx, found.as_ref().to_vec())
}

/// A signature of RFC 2104 with MD5, which `ring` does not have.
fn hmac_md5(key: &[u8], data: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut block = match key.len() > BLOCK {
        true => Md5::digest(key).to_vec(),
        false => key.to_vec(),
    };
    block.resize(BLOCK, 0);
    let padded = |byte: u8| block.iter().map(|own| own ^ byte).collect::<Vec<u8>>();
    let inner = Md5::new()
        .chain_update(padded(0x36))
        .chain_update(data)
        .finalize();
    let outer = Md5::new().chain_update(padded(0x5c)).chain_update(inner);
    outer.finalize().to_vec()
}

/// The content of a file next to the calling file, or next to the script.
fn opened<'js>(
    ctx: &Ctx<'js>,
    shared: &Rc<RefCell<Shared>>,
    path: &Path,
    is_binary: bool,
    base: &str,
) -> Result<Value<'js>> {
    let shared = shared.borrow();
    let beside = |file: &Path| plain(&file.parent().unwrap_or(Path::new("/")).join(path));
    let candidates: [PathBuf; 2] = [beside(Path::new(base)), beside(&shared.entry)];
    let found = match shared.files.read(&candidates[0]) {
        Err(Unreadable::Absent) => shared.files.read(&candidates[1]),
        found => found,
    };
    let content = found.map_err(|why| {
        let message = format!("open: `{}` cannot be read: {why}", path.display());
        Exception::throw_message(ctx, &message)
    })?;
    if is_binary {
        return Ok(ArrayBuffer::new(ctx.clone(), content)?.into_value());
    }
    let content =
        source::decoded(&content).unwrap_or_else(|| String::from_utf8_lossy(&content).into_owned());
    Ok(rquickjs::String::from_str(ctx.clone(), &content)?.into_value())
}

/// The exports of a file in the older form of modules.
fn required<'js>(
    ctx: &Ctx<'js>,
    shared: &Rc<RefCell<Shared>>,
    name: &str,
    base: &str,
) -> Result<Value<'js>> {
    let path = local(&shared.borrow(), Path::new(base), name);
    let path = path.map_err(|why| Exception::throw_message(ctx, &format!("require: {why}")))?;
    let exports: Object<'js> = Module::import(ctx, path)?.finish()?;
    let default: Value<'js> = exports.get("default")?;
    match default.is_object() && !default.is_function() {
        true => Ok(default),
        false => Ok(exports.into_value()),
    }
}
