vcl 4.1;

backend default {
  .host = "127.0.0.1";
  .port = "{{service.port}}";
}

sub vcl_recv {
  {{receive}}
}

sub vcl_deliver {
  # Varnish itself adds `Via`, with its version.
  set resp.http.Via = "varnish";
  if (obj.hits > 0) {
    set resp.http.X-Cache = "hit";
  } else {
    set resp.http.X-Cache = "miss";
  }
}
