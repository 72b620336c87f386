//! Parsing responses of local servers, over a real socket.

use tokio::net::TcpListener;

use super::*;

async fn server(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let read = stream.read(&mut request).await.unwrap();
        assert!(request[..read].starts_with(b"GET /v1/models HTTP/1.0\r\n"));
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    address
}

#[tokio::test]
async fn the_ids_of_a_list_are_found() {
    let address = server(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\
         {\"object\":\"list\",\"data\":[{\"id\":\"qwen:7b\"},{\"id\":\"llama\"},{\"no\":1}]}",
    )
    .await;
    assert_eq!(list(&address, "/v1/models").await.unwrap(), ["qwen:7b", "llama"]);
}

#[tokio::test]
async fn a_server_that_keeps_its_connection_open_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let body = "{\"data\":[{\"id\":\"smol\"}]}";
    let answer =
        format!("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (first, rest) = answer.split_at(60);
        stream.write_all(first.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        stream.write_all(rest.as_bytes()).await.unwrap();
        stream
    });
    let listed = tokio::time::timeout(Duration::from_secs(10), list(&address, "/v1/models")).await;
    assert_eq!(listed.unwrap().unwrap(), ["smol"]);
    drop(server.await);
}

#[tokio::test]
async fn a_server_that_is_something_else_is_none() {
    for answer in ["HTTP/1.1 404 Not Found\r\n\r\n{}", "HTTP/1.1 200 OK\r\n\r\n<html>", "SSH-2.0-x\r\n", ""] {
        let address = server(answer).await;
        assert_eq!(list(&address, "/v1/models").await, None, "{answer}");
    }
}

#[tokio::test]
async fn nobody_listening_is_none() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    assert_eq!(list(&address, "/v1/models").await, None);
}

#[test]
fn every_local_provider_has_an_address() {
    for provider in PROVIDERS.iter().filter(|provider| provider.key_variable.is_none()) {
        let (host, path) = address(provider.base_url).unwrap();
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        assert_eq!(path, "/v1/models");
    }
}
