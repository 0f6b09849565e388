package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure/secret"
	"kaz/internal/csi"
	"kaz/internal/csi/file"
	"kaz/internal/plan/share"
)

// tokenKey is the key of the service account's tokens, in secrets or in the volume context.
const tokenKey = "csi.storage.k8s.io/serviceAccount.tokens"

// tokenAudience is the audience of tokens that Azure takes for its own.
const tokenAudience = "api://AzureADTokenExchange"

// readToken returns the token of the pod's service account, the zero text if there is none.
func readToken(secrets, values map[string]string) (secret.Text, error) {
	text := cmp.Or(secrets[tokenKey], values[tokenKey])
	if text == "" {
		return secret.Text{}, nil
	}
	var tokens map[string]struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(text), &tokens); err != nil {
		return secret.Text{}, errors.New("the tokens of the service account are not JSON") // the cause has the text
	}
	return secret.New(tokens[tokenAudience].Token), nil
}

// resolve returns the volume that a request is about. Attributes come before the parts of the volume id.
func (n *Node) resolve(request, id string, values, secrets map[string]string) (volume, error) {
	var none volume
	p, err := share.ReadAttributes(values)
	if err != nil {
		return none, csi.Invalid("%s: volume attributes: %v", request, err)
	}
	token, err := readToken(secrets, values)
	if err != nil {
		return none, csi.Invalid("%s: %v", request, err)
	}
	parts, err := share.ParseVolume(id)
	if err != nil {
		parts = share.Volume{} // the id of a volume that a user made can be any text
	}
	if parts.Disk != "" || p.DiskName != "" {
		return none, csi.Invalid("%s: volume %s: file systems in a VHD file are not supported", request, id)
	}
	parts.Group, parts.Subscription = cmp.Or(p.ResourceGroup, parts.Group), cmp.Or(p.Subscription, parts.Subscription)
	parts.Account = cmp.Or(parts.Account, share.AccountOf(p.Server))
	credentials, given, err := file.ReadSecret(secrets)
	if err != nil {
		return none, csi.Invalid("%s: volume %.256s: the Secret of the request: %v", request, id, err)
	}
	if given && (parts.Account == "" || parts.Translated) {
		parts.Account = credentials.Account
	}
	parts.Account = cmp.Or(p.Account, parts.Account)
	p.ResourceGroup, p.Subscription = parts.Group, parts.Subscription
	if name := p.Expand(p.ShareName); name != "" {
		parts.Share = name
	}
	p.SecretNamespace = cmp.Or(p.SecretNamespace, parts.Namespace, p.PVCNamespace, "default")
	if parts.Share == "" {
		return none, csi.Invalid("%s: volume %s: shareName is missing in the volume attributes, and the volume id names no share",
			request, id)
	}
	return volume{
		id: id, parameters: p, account: n.config.Cluster.AccountID(parts), name: parts.Share, secrets: secrets, token: token,
	}, nil
}

// needsToken reports whether a volume is mounted with a token of the pod's service account. Such a volume is mounted when it is
// published: its token is that of one pod.
func (v volume) needsToken() bool {
	p := v.parameters
	return is(p.WorkloadIdentity) || p.ClientID != "" && !is(p.ManagedIdentity)
}

func is(b *bool) bool { return b != nil && *b }

// credentials returns the name and key of a volume's account: from the request, from the Secret, or from Azure.
func (n *Node) credentials(ctx context.Context, v *volume) (file.Credentials, error) {
	if c, given, err := file.ReadSecret(v.secrets); given {
		if err = errors.Join(err, v.checkAccount(c)); err != nil {
			return file.Credentials{}, status.Errorf(codes.InvalidArgument, "volume %s: the Secret of the request: %v", v.id, err)
		}
		return c, nil
	}
	p := v.parameters
	name := p.SecretName
	if name == "" && v.account.Name() != "" {
		name = share.SecretName(v.account.Name())
	}
	var why error
	if n.config.Secret != nil && name != "" {
		values, err := n.config.Secret(ctx, p.SecretNamespace, name)
		c, ok, bad := file.ReadSecret(values)
		switch {
		case err == nil && ok:
			if err = errors.Join(bad, v.checkAccount(c)); err == nil {
				return c, nil
			}
		case err == nil:
			err = errors.New("it has no azurestorageaccountname or azurestorageaccountkey")
		}
		why = fmt.Errorf("secret %s/%s: %w", p.SecretNamespace, name, err)
	}
	switch {
	case is(p.KeyFromSecret):
		return file.Credentials{}, status.Errorf(codes.FailedPrecondition, "volume %s: there is no key: %v; "+
			"getAccountKeyFromSecret is true, so Azure is not asked for it", v.id, why)
	case v.account.Name() == "":
		return file.Credentials{}, csi.Invalid("volume %s: storageAccount is missing: neither attributes, volume id nor Secret "+
			"name it", v.id)
	case n.config.Key == nil:
		return file.Credentials{}, status.Errorf(codes.FailedPrecondition, "volume %s: there is no key: %v, and the node has no cloud "+
			"configuration", v.id, why)
	}
	key, err := n.config.Key(ctx, v.account, is(p.LatestKey))
	if err != nil {
		return file.Credentials{}, csi.Status(err, "volume %s: key of storage account %s (its Secret: %v)", v.id, v.account.Name(), why)
	}
	v.azureKey = true
	return file.Credentials{Account: v.account.Name(), Key: key}, nil
}

// host returns the file server of a volume. Tickets are for the public name of a server, which leads to its private endpoint in
// the network that has one.
func (n *Node) host(v *volume) string {
	p := v.parameters
	host := cmp.Or(p.Server, n.config.Cluster.Host(v.account.Name(), p.EndpointSuffix))
	if p.Identity() {
		host = strings.Replace(host, ".privatelink.file.", ".file.", 1)
	}
	return host
}

// checkAccount returns an error if credentials are those of another account than the volume's.
func (v *volume) checkAccount(c file.Credentials) error {
	if name := v.account.Name(); name != "" && !strings.EqualFold(name, c.Account) {
		return fmt.Errorf("it has the key of storage account %s, and the volume is in storage account %s", c.Account, name)
	}
	return nil
}

// folderAtMost bounds the creation of a volume's folder, so that time is left for the mount.
const folderAtMost = 20 * time.Second

// createFolder creates the folder of a volume, if its attributes say so.
func (n *Node) createFolder(ctx context.Context, v *volume, c file.Credentials) error {
	p := v.parameters
	if !is(p.CreateFolder) || p.Folder == "" {
		return nil
	}
	if n.config.Files == nil {
		return errors.New("this node cannot create folders")
	}
	ctx, end := context.WithTimeout(ctx, folderAtMost)
	defer end()
	if p.NFS() {
		var err error
		if c, err = n.credentials(ctx, v); err != nil {
			return err
		}
	}
	files, err := n.config.Files(n.config.Cluster.Host(v.account.Name(), p.EndpointSuffix), c)
	if err != nil {
		return err
	}
	return files.CreateFolder(ctx, v.name, p.Expand(p.Folder))
}
