//! The proxy's HTTP side: `CONNECT host:port`, and requests with an absolute URL.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::{Reply, Target};

/// Maximum bytes of the head of a request.
const MAX_HEAD: usize = 64 * 1024;

/// Headers that concern the proxy alone, and those that this side sets itself.
const DROPPED: [&str; 6] =
    ["proxy-connection", "proxy-authorization", "connection", "keep-alive", "host", "te"];

/// Reads the head of a request; `None` if it was answered with an error.
pub(super) async fn greet(client: &mut TcpStream) -> io::Result<Option<Target>> {
    use tokio::io::AsyncWriteExt as _;
    let mut head = Vec::new();
    let end = loop {
        let mut piece = [0u8; 4096];
        let length = client.read(&mut piece).await?;
        if length == 0 {
            return Ok(None);
        }
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(&piece[..length]);
        if let Some(at) = head[from..].windows(4).position(|it| it == b"\r\n\r\n") {
            break from + at + 4;
        }
        if head.len() > MAX_HEAD {
            client.write_all(&answer("431 Request Header Fields Too Large", "the head is too long")).await?;
            return Ok(None);
        }
    };
    let rest = head.split_off(end);
    match read(&head, rest) {
        Some(target) => Ok(Some(target)),
        None => {
            client
                .write_all(&answer("400 Bad Request", "this is a proxy: use CONNECT or an http URL"))
                .await?;
            client.shutdown().await?;
            Ok(None)
        }
    }
}

/// Reads a request; `rest` is what came after its head.
fn read(head: &[u8], rest: Vec<u8>) -> Option<Target> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return None;
    }
    if method == "CONNECT" {
        // A client speaks first only after the tunnel is there.
        let (host, port) = authority(target, None)?;
        return rest.is_empty().then_some(Target { host, port, reply: Reply::HttpTunnel });
    }
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"))?;
    let after = &target[scheme.len()..];
    let end = after.find(['/', '?']).unwrap_or(after.len());
    let (place, path) = after.split_at(end);
    let (host, port) = authority(place, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    // One request per connection, so that each is checked; the host is the one that was checked.
    let mut forwarded = format!("{method} {slash}{path} {version}\r\nHost: {place}\r\nConnection: close\r\n");
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, _) = line.split_once(':')?;
        if !DROPPED.contains(&name.to_ascii_lowercase().as_str()) {
            forwarded.push_str(line);
            forwarded.push_str("\r\n");
        }
    }
    forwarded.push_str("\r\n");
    let mut forwarded = forwarded.into_bytes();
    forwarded.extend(rest);
    Some(Target { host, port, reply: Reply::HttpForward(forwarded) })
}

/// Host and port of an authority; one with a user name is not accepted.
fn authority(text: &str, default_port: Option<u16>) -> Option<(String, u16)> {
    if text.is_empty() || text.contains(['@', '\\', '#']) || text.chars().any(|c| c.is_control() || c == ' ')
    {
        return None;
    }
    let (host, port) = match text.rfind(':').filter(|at| !text[*at..].contains(']')) {
        Some(at) => (&text[..at], Some(text[at + 1..].parse().ok()?)),
        None => (text, default_port),
    };
    // An address of IPv6 has colons of its own, and needs its brackets.
    let plain = !host.is_empty() && (!host.contains(':') || (host.starts_with('[') && host.ends_with(']')));
    plain.then_some((host.to_owned(), port?))
}

/// A response that ends the connection.
pub(super) fn answer(status: &str, reason: &str) -> Vec<u8> {
    let body = format!("fusee: {reason}\n");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(head: &str) -> Option<(String, u16)> {
        read(head.as_bytes(), Vec::new()).map(|target| (target.host, target.port))
    }

    #[test]
    fn hosts_and_ports_are_read() {
        let some = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(place("CONNECT a.org:443 HTTP/1.1\r\n\r\n"), some("a.org", 443));
        assert_eq!(place("CONNECT [::1]:8080 HTTP/1.1\r\n\r\n"), some("[::1]", 8080));
        assert_eq!(place("GET http://a.org/x HTTP/1.1\r\n\r\n"), some("a.org", 80));
        assert_eq!(place("GET HTTP://a.org:81 HTTP/1.1\r\n\r\n"), some("a.org", 81));
        for wrong in [
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT ::1:80 HTTP/1.1\r\n\r\n",
            "CONNECT a.org:99999 HTTP/1.1\r\n\r\n",
            "CONNECT good.org@evil.org:443 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://good.org\\@evil.org/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_request_is_passed_on_with_the_host_that_was_checked() {
        let head = "POST http://a.org/x?y HTTP/1.1\r\nHost: evil.org\r\nProxy-Authorization: b\r\nAccept: */*\r\n\r\n";
        let target = read(head.as_bytes(), b"body".to_vec()).unwrap();
        let Reply::HttpForward(sent) = target.reply else { panic!("not forwarded") };
        let expected = "POST /x?y HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\nAccept: */*\r\n\r\nbody";
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
    }
}
