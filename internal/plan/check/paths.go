package check

// paths judges whether the endpoints are reached from this machine.
func paths(f *Facts, l *list) {
	for _, p := range f.Paths {
		if p.Fault != "" {
			l.add(p.Name, Problem, "it is not reached at "+p.At+": "+p.Fault, p.Obstacle.mend(p.At))
		}
	}
}

func (o Obstacle) mend(at string) string {
	switch o {
	case NoName:
		return "correct the name server of this machine, or the private DNS zone of the endpoint"
	case NoConnection, NoAnswer:
		return "open the way through firewalls, proxies (HTTPS_PROXY) and routes: curl -v " + at
	case NoCertificate:
		return "give this machine the certificate of the authority that signed the endpoint's, or of the proxy between: SSL_CERT_FILE"
	}
	return "curl -v " + at
}
