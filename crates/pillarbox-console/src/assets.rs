//! Scripts and styles, in the program itself: users build nothing, and nothing comes from another host.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};
use tower_http::compression::CompressionLayer;

/// A file of the console.
pub(crate) struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    /// Of its bytes: an address changes with what it stands for, so that browsers may keep it for ever.
    hash: String,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// All assets. Licences and versions of those in `vendor` stand beside them.
static ASSETS: LazyLock<[Asset; 7]> = LazyLock::new(|| {
    [
        Asset::new("console.css", STYLE, include_bytes!("../assets/console.css")),
        Asset::new("uplot.css", STYLE, include_bytes!("../assets/vendor/uplot-1.6.32.min.css")),
        Asset::new("htmx.js", SCRIPT, include_bytes!("../assets/vendor/htmx-2.0.11.min.js")),
        Asset::new("idiomorph.js", SCRIPT, include_bytes!("../assets/vendor/idiomorph-ext-0.8.0.min.js")),
        Asset::new("uplot.js", SCRIPT, include_bytes!("../assets/vendor/uplot-1.6.32.iife.min.js")),
        Asset::new("console.js", SCRIPT, include_bytes!("../assets/console.js")),
        Asset::new("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
    ]
});

impl Asset {
    fn new(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> Self {
        let mut hash = String::new();
        for byte in Sha256::digest(bytes).iter().take(6) {
            // Text takes all that is written to it.
            let _ = write!(hash, "{byte:02x}");
        }
        Self { name, kind, bytes, hash }
    }
}

/// The address of an asset, from the root of the console.
pub(crate) fn address(name: &str) -> String {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or_else(String::new, |asset| format!("assets/{}/{}", asset.hash, asset.name))
}

/// Serves the assets, compressed. Pages are not: in those stand tokens beside what a request has said.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{hash}/{name}", get(serve)).layer(CompressionLayer::new().gzip(true))
}

async fn serve(Path((hash, name)): Path<(String, String)>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name && asset.hash == hash) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = asset.bytes.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, forever);
    response
}
