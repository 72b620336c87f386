# Homebrew formula for Linux. It has not been run: no release has been published yet. Before the first use, replace
# OWNER and the checksum (`sha256sum` of the source archive of the tag).
class Fusee < Formula
  desc "Runs LLM agents durably: every step is journaled, runs can be resumed and replayed"
  homepage "https://github.com/OWNER/fusee"
  url "https://github.com/OWNER/fusee/archive/refs/tags/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["Apache-2.0", "MIT"]

  depends_on "rust" => :build
  depends_on :linux # the sandbox uses Linux interfaces

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    system bin/"fusee", "docs", "--man", man1
    generate_completions_from_executable(bin/"fusee", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/fusee --version")
    system bin/"fusee", "docs", "installation"
  end
end
