package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/cadre-dev/cadre/provider"
)

// unreachable is the error of a request that got no response, or whose response
// broke off. Its message names the cause.
func unreachable(host string, err error) *provider.Error {
	e := &provider.Error{Class: provider.Network, Err: err}
	e.Message, e.Final = cause(host, err)
	return e
}

// proxy is what texts about it have in common.
const proxy = "the proxy"

// cause describes what went wrong on the way to host; final means that trying again
// will not help.
func cause(host string, err error) (message string, final bool) {
	var (
		dns       *net.DNSError
		untrusted *tls.CertificateVerificationError
		hostname  x509.HostnameError
		noTLS     tls.RecordHeaderError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("look up %s: %s", dns.Name, dns.Err), false
	case errors.As(err, &untrusted), errors.As(err, &hostname):
		return fmt.Sprintf("TLS with %s: %s", host, inner(err)), true
	case errors.As(err, &noTLS), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fmt.Sprintf("TLS with %s: the server does not speak it (is the base URL's https right?)", host), true
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"): // how crypto/tls wraps alerts
		return fmt.Sprintf("TLS with %s: %s", host, op.Err), true
	case strings.Contains(err.Error(), "Proxy Authentication Required"):
		return proxy + " requires a user name and password", true
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return fmt.Sprintf("connect to %s: %s", proxy, op.Err), false
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Sprintf("connect to %s: %s", host, inner(op)), false
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Sprintf("%s closed the connection", host), false
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s did not answer in time", host), false
	case strings.Contains(err.Error(), "failed to parse Location header"):
		return fmt.Sprintf("%s redirects to an address that is not a URL: is the base URL right?", host), true
	case strings.Contains(err.Error(), "unsupported protocol scheme"):
		return "the base URL has no http:// or https://", true
	}
	return fmt.Sprintf("exchange with %s: %s", host, inner(err)), false
}

// inner is the innermost error that is not just a number: what the system said.
func inner(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return clean(err.Error())
}
