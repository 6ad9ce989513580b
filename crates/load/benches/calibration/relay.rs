//! A null server behind a relay that ends TLS, because null servers have no TLS over TCP.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::null::{Behavior, Seen};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// Time between two looks at the stop flag.
const LOOK: Duration = Duration::from_millis(20);

/// Serves until `stop` is set, and returns the counts of the null server. The relay has this thread.
pub(super) fn serve(
    listener: TcpListener,
    behavior: &Behavior,
    stop: &AtomicBool,
) -> io::Result<Seen> {
    let behind = TcpListener::bind("127.0.0.1:0")?;
    let upstream = behind.local_addr()?;
    let acceptor = acceptor()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            super::raise_priority();
            load::null::serve(behind, behavior, stop)
        });
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            while !stop.load(Ordering::Relaxed) {
                if let Ok(Ok((client, _))) = tokio::time::timeout(LOOK, listener.accept()).await {
                    tokio::spawn(relay(acceptor.clone(), client, upstream));
                }
            }
            io::Result::Ok(())
        })?;
        server.join().expect("the server does not panic")
    })
}

async fn relay(
    acceptor: TlsAcceptor,
    client: TcpStream,
    upstream: std::net::SocketAddr,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

fn acceptor() -> io::Result<TlsAcceptor> {
    let names = vec!["localhost".to_owned()];
    let signed = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let chain = vec![signed.cert.der().clone()];
            builder
                .with_no_client_auth()
                .with_single_cert(chain, key.into())
        })
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
