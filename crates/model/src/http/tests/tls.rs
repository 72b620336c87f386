//! TLS and HTTP/2 against a server with a private certificate authority.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::server::{Server, streamed};
use super::{DONE, HELLO, STOP, conversation, open, send};
use crate::{Connection, ErrorKind, RequestOptions};

/// A server's identity, and the file with the certificate authority that issued it.
fn identity(protocol: &[u8]) -> (TlsAcceptor, tempfile::TempDir, PathBuf) {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(vec![]).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let server = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
    let certificate = server.signed_by(&key, &issuer).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, authority_certificate.pem()).unwrap();
    let mut config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    (TlsAcceptor::from(Arc::new(config)), folder, ca_file)
}

fn settings(host: &str, port: u16, ca_file: Option<PathBuf>) -> Connection {
    Connection { base_url: Some(format!("https://{host}:{port}/v1")), ca_file, ..Connection::default() }
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_its_file_is_given() {
    let (tls, _folder, ca_file) = identity(b"http/1.1");
    let server = Server::encrypted(vec![streamed(&[HELLO, STOP, DONE])], tls).await;
    let model = open(&settings("localhost", server.port, Some(ca_file)));
    assert_eq!(send(&*model).await.0.unwrap().text, "hello");
}

#[tokio::test]
async fn an_unknown_authority_is_refused_with_the_reason() {
    let (tls, _folder, _) = identity(b"http/1.1");
    let server = Server::encrypted(vec![], tls).await;
    let error = send(&*open(&settings("localhost", server.port, None))).await.0.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert_eq!(
        error.message,
        format!("cannot reach https://localhost:{}/v1: invalid peer certificate: UnknownIssuer", server.port)
    );
    assert_eq!(server.requests(), Vec::<String>::new(), "nothing was said before the check");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (tls, _folder, ca_file) = identity(b"http/1.1");
    let server = Server::encrypted(vec![], tls).await;
    let error = send(&*open(&settings("127.0.0.1", server.port, Some(ca_file)))).await.0.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert!(error.message.contains("certificate not valid for name \"127.0.0.1\""), "{error}");
}

#[tokio::test]
async fn a_server_that_speaks_no_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Read until the client has closed; closing with unread bytes would reset its connection.
        while stream.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
    });
    let (_, _folder, ca_file) = identity(b"http/1.1");
    let error = send(&*open(&settings("localhost", port, Some(ca_file)))).await.0.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert_eq!(
        error.message,
        format!(
            "cannot reach https://localhost:{port}/v1: received corrupt message of type InvalidContentType"
        )
    );
}

#[tokio::test]
async fn http_2_where_the_server_offers_it() {
    let (tls, _folder, ca_file) = identity(b"h2");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(tls.accept(stream).await.unwrap()).await.unwrap();
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let (request, mut respond) = connection.accept().await.unwrap().unwrap();
            let exchange = async {
                let mut body = request.into_body();
                let mut gathered = Vec::new();
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    body.flow_control().release_capacity(data.len()).unwrap();
                    gathered.extend_from_slice(&data);
                }
                let mut stream = respond.send_response(Default::default(), false).unwrap();
                for event in [HELLO, STOP, DONE] {
                    stream.send_data(Bytes::from_static(event.as_bytes()), event == DONE).unwrap();
                }
                gathered
            };
            // The connection makes progress only while it is polled for the next request.
            tokio::select! {
                gathered = exchange => bodies.push(gathered),
                _ = async { while connection.accept().await.is_some() {} } => {}
            }
        }
        let _ = tokio::time::timeout(std::time::Duration::from_millis(200), connection.accept()).await;
        bodies
    });
    let model = open(&settings("localhost", port, Some(ca_file)));
    for _ in 0..2 {
        assert_eq!(send(&*model).await.0.unwrap().text, "hello");
    }
    let options = RequestOptions { model: "test-model".into(), ..RequestOptions::default() };
    let sent = conversation().body(&options).to_vec();
    assert_eq!(serving.await.unwrap(), [sent.clone(), sent]);
}
