//! The proxies of `weigh init --proxy NAME`: their configuration files and commands.
//!
//! Each file forwards every request, without a log and without a cache, and keeps its connections to the
//! server. It is a beginning that a person changes.

/// A proxy with its configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KnownProxy {
    /// The value of `--proxy`.
    pub(super) name: &'static str,
    /// The program that must be on PATH.
    program: &'static str,
    /// The command, with templates.
    run: &'static str,
    /// The command for its version.
    version: &'static str,
    /// Settings of the configuration, each with a value and a comment.
    settings: &'static [(&'static str, &'static str, &'static str)],
    /// Names and contents of the files. `HOST` stands for the host of the server as in a URL, and `BARE_HOST`
    /// for the host without brackets.
    files: &'static [(&'static str, &'static str)],
}

/// The folder of the files, next to the lab. The lab may have the name of a file, such as `envoy.yaml`.
pub(super) const FOLDER: &str = "proxy";

/// All known proxies, by name.
static KNOWN: [KnownProxy; 7] = [
    KnownProxy {
        name: "caddy",
        program: "caddy",
        run: "caddy run --config {{file.Caddyfile}} --adapter caddyfile",
        version: "caddy version",
        settings: &[],
        files: &[(
            "Caddyfile",
            "\
{
	admin off
	auto_https off
}
http://:{{port}} {
	bind 127.0.0.1
	reverse_proxy HOST:{{server.port}}
}
",
        )],
    },
    KnownProxy {
        name: "envoy",
        program: "envoy",
        run: "envoy --config-path {{file.envoy.yaml}} --use-dynamic-base-id --log-level warning --concurrency {{threads}}",
        version: "envoy --version",
        settings: &[("threads", "1", "threads that forward requests")],
        files: &[(
            "envoy.yaml",
            "\
static_resources:
  listeners:
    - address: {socket_address: {address: 127.0.0.1, port_value: {{port}}}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: ingress
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: [\"*\"]
                      routes:
                        - match: {prefix: /}
                          route: {cluster: server, timeout: 0s}
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
    - name: server
      type: STRICT_DNS
      load_assignment:
        cluster_name: server
        endpoints:
          - lb_endpoints:
              - endpoint: {address: {socket_address: {address: \"BARE_HOST\", port_value: {{server.port}}}}}
",
        )],
    },
    KnownProxy {
        name: "haproxy",
        program: "haproxy",
        run: "haproxy -db -f {{file.haproxy.cfg}}",
        version: "haproxy -v",
        settings: &[],
        files: &[(
            "haproxy.cfg",
            "\
global
  maxconn 2000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend proxy
  bind {{addr}}
  default_backend server
backend server
  server one HOST:{{server.port}}
",
        )],
    },
    KnownProxy {
        name: "httpd",
        program: "apache2",
        run: "apache2 -D FOREGROUND -f {{file.httpd.conf}}",
        version: "apache2 -v",
        settings: &[(
            "modules",
            "/usr/lib/apache2/modules",
            "folder of the modules, for example /usr/lib64/httpd/modules for the program httpd",
        )],
        files: &[(
            "httpd.conf",
            "\
ServerRoot \"{{files}}\"
ServerName localhost
PidFile httpd.pid
DefaultRuntimeDir .
Listen {{addr}}
ErrorLog /dev/stderr
LogLevel warn
LoadModule mpm_event_module {{modules}}/mod_mpm_event.so
LoadModule authz_core_module {{modules}}/mod_authz_core.so
LoadModule proxy_module {{modules}}/mod_proxy.so
LoadModule proxy_http_module {{modules}}/mod_proxy_http.so
ProxyPass / http://HOST:{{server.port}}/
",
        )],
    },
    KnownProxy {
        name: "nginx",
        program: "nginx",
        run: "nginx -e stderr -p {{files}} -c {{file.nginx.conf}}",
        version: "nginx -v",
        settings: &[("log", "off", "an access log: `{{files}}/access.log`, or off")],
        files: &[(
            "nginx.conf",
            "\
daemon off;
worker_processes 1;
pid {{files}}/nginx.pid;
error_log stderr warn;

events {}

http {
  access_log {{log}};
  client_body_temp_path {{files}}/body;
  proxy_temp_path {{files}}/proxy;
  fastcgi_temp_path {{files}}/fastcgi;
  uwsgi_temp_path {{files}}/uwsgi;
  scgi_temp_path {{files}}/scgi;

  upstream server {
    server HOST:{{server.port}};
    keepalive 16;
  }

  server {
    listen {{addr}};
    location / {
      proxy_pass http://server;
      # Both lines let nginx keep its connections to the server.
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }
  }
}
",
        )],
    },
    KnownProxy {
        name: "traefik",
        program: "traefik",
        run: "traefik --configFile={{file.traefik.yaml}}",
        version: "traefik version",
        settings: &[],
        files: &[
            (
                "traefik.yaml",
                "\
global: {checkNewVersion: false, sendAnonymousUsage: false}
log: {level: WARN}
entryPoints:
  web: {address: \"{{addr}}\"}
providers:
  file: {filename: \"{{file.routes.yaml}}\"}
",
            ),
            (
                "routes.yaml",
                "\
http:
  routers:
    all: {entryPoints: [web], rule: \"PathPrefix(`/`)\", service: server}
  services:
    server:
      loadBalancer:
        servers:
          - url: http://HOST:{{server.port}}
",
            ),
        ],
    },
    KnownProxy {
        name: "varnish",
        program: "varnishd",
        run: "varnishd -F -a {{addr}} -f {{file.default.vcl}} -n {{files}}/work -s malloc,64m",
        version: "varnishd -V",
        settings: &[(
            "cache",
            "pass",
            "pass forwards each request, hash looks into the cache first",
        )],
        files: &[(
            "default.vcl",
            "\
vcl 4.1;

backend default {
  .host = \"BARE_HOST\";
  .port = \"{{server.port}}\";
}

sub vcl_recv {
  return ({{cache}});
}
",
        )],
    },
];

impl KnownProxy {
    /// The proxy with this name.
    pub(super) fn named(name: &str) -> Option<&'static KnownProxy> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// The names of all known proxies, in a sentence.
    pub(super) fn names() -> String {
        KNOWN.each_ref().map(|known| known.name).join(", ")
    }

    /// Names and contents of the files for a server at this host.
    pub(super) fn files(&self, host: &str) -> impl Iterator<Item = (&'static str, String)> {
        // An address of IPv6 has brackets in a URL, and none in a field of its own.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let files = self.files.iter();
        files.map(move |(name, text)| {
            let text = text.replace("BARE_HOST", bare).replace("HOST", host);
            (*name, text)
        })
    }

    /// The system in the text of a lab.
    pub(super) fn system(&self, name: &str) -> String {
        let mut text = format!("  {name}:\n");
        if !self.settings.is_empty() {
            text += "    settings:\n";
            for (setting, value, comment) in self.settings {
                text += &format!("      {setting}: \"{value}\" # {comment}\n");
            }
        }
        let files = self.files.iter();
        let files = files.map(|(file, _)| format!("{file}: {FOLDER}/{file}"));
        let files = files.collect::<Vec<_>>().join(", ");
        text += &format!("    files: {{{files}}} # templates. Change them as you like\n");
        text += &format!("    run: \"{}\"\n", self.run);
        text += &format!(
            "    version: {}\n    needs: {}\n",
            self.version, self.program
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_are_unique() {
        for known in &KNOWN {
            let same = KNOWN.iter().filter(|other| other.name == known.name);
            assert_eq!(same.count(), 1, "{}", known.name);
            assert_eq!(KnownProxy::named(known.name), Some(known));
            for (name, text) in known.files("10.0.0.1") {
                assert!(
                    known.run.contains(name) || text.starts_with("http:"),
                    "{name}"
                );
                assert!(!text.contains("HOST"), "{name}");
            }
        }
        assert_eq!(KnownProxy::named("nginx2"), None);
        let text = |name| {
            let known = KnownProxy::named(name).expect("it is known");
            known
                .files("[::1]")
                .map(|(_, text)| text)
                .collect::<String>()
        };
        assert!(text("nginx").contains("server [::1]:{{server.port}}"));
        assert!(text("envoy").contains("address: \"::1\""));
        assert!(text("varnish").contains(".host = \"::1\";"));
    }
}
