// Package pullcredential gets the credential with which a kubelet pulls an image from Azure Container
// Registry. Layer L3.
//
// It implements version 1 of the kubelet's credential provider protocol: one request and one response
// ([Read], [Response.Write]). [Provider.Respond] recognizes the registry by its complete host name
// and selects the identity of the request or of the configuration. It asks the registry where tokens
// are exchanged, which must be at the registry itself, and exchanges the identity's token there.
// Passwords and tokens never appear in errors or logs.
package pullcredential
