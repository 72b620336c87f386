//! The proxy's SOCKS5 side (RFC 1928): connections without authentication, nothing else.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Reply, Target};

/// First byte of every message.
pub(super) const VERSION: u8 = 5;

/// Reply codes.
pub(super) const GRANTED: u8 = 0;
pub(super) const NOT_ALLOWED: u8 = 2;
pub(super) const UNREACHABLE: u8 = 4;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS: u8 = 8;

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Reads the greeting and the request; `None` if it was answered with an error.
pub(super) async fn greet(client: &mut TcpStream) -> io::Result<Option<Target>> {
    let mut head = [0u8; 2];
    client.read_exact(&mut head).await?;
    let mut methods = vec![0u8; usize::from(head[1])];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Ok(None);
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut request = [0u8; 4];
    client.read_exact(&mut request).await?;
    let [_, command, _, kind] = request;
    let host = match kind {
        IPV4 => {
            let mut address = [0u8; 4];
            client.read_exact(&mut address).await?;
            Ipv4Addr::from(address).to_string()
        }
        IPV6 => {
            let mut address = [0u8; 16];
            client.read_exact(&mut address).await?;
            format!("[{}]", Ipv6Addr::from(address))
        }
        NAME => {
            let mut name = vec![0u8; usize::from(client.read_u8().await?)];
            client.read_exact(&mut name).await?;
            match String::from_utf8(name).ok().filter(|name| is_name(name)) {
                Some(name) => name,
                None => return refuse(client, NO_SUCH_ADDRESS).await,
            }
        }
        _ => return refuse(client, NO_SUCH_ADDRESS).await,
    };
    let port = client.read_u16().await?;
    if command != CONNECT {
        return refuse(client, NO_SUCH_COMMAND).await;
    }
    Ok(Some(Target { host, port, reply: Reply::Socks }))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && !"/\\@#:".contains(c))
}

async fn refuse(client: &mut TcpStream, code: u8) -> io::Result<Option<Target>> {
    client.write_all(&reply(code)).await?;
    client.shutdown().await?;
    Ok(None)
}

/// A reply. The address that the proxy has outside is nobody's business.
pub(super) fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}
