// Package pullcredential decides with which credential a kubelet pulls an image
// from Azure Container Registry, and gets it. Layer L3.
//
// It speaks version 1 of the kubelet's credential provider protocol: one request
// comes in, one response goes out ([Read], [Response.Write]). [Provider.Respond]
// recognises the registry by its whole host name, takes the identity that the
// request or the configuration names, and exchanges its token with the registry,
// after the registry has said, under its own name, where that is done. Passwords
// and tokens never get into errors or logs.
package pullcredential
