package resources

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/vault"
	"kaz/internal/template/lenient"
	"kaz/internal/template/shape"
)

// linkedField has the documents that a deployment links to, by their URIs. They are downloaded when the deployment
// is checked, because nothing can be downloaded while it runs.
const linkedField = behaviour.Private + "linked"

// source is what a deployment deploys.
type source struct {
	document, given behaviour.Object
	link            behaviour.Object // where the template is from, nil for a template in the request
	linked          behaviour.Object
}

// sourceOf reads the template and the parameters of a request, or follows the links to them.
func sourceOf(c *behaviour.Call) (*source, error) {
	s := &source{document: behaviour.Sub(c.Body, "properties.template"), given: behaviour.Sub(c.Body, "properties.parameters"),
		linked: behaviour.Clone(behaviour.Sub(c.Body, linkedField))}
	if s.linked == nil {
		s.linked = behaviour.Object{}
	}
	link := behaviour.Sub(c.Body, "properties.templateLink")
	switch {
	case s.document != nil && link != nil:
		return nil, behaviour.Gateway(400, "InvalidRequestContent",
			"The request content was invalid: both the properties 'template' and 'templateLink' are specified.")
	case s.document == nil && link == nil:
		return nil, behaviour.Gateway(400, "InvalidRequestContent",
			"The request content was invalid: neither the property 'template' nor 'templateLink' is specified.")
	case link != nil:
		document, err := s.follow(c, link)
		if err != nil {
			return nil, err
		}
		s.document, s.link = document, behaviour.Clone(link)
		delete(s.link, "queryString")
		behaviour.Default(s.link, "contentVersion", document["contentVersion"])
	}
	if err := s.checkShape(); err != nil {
		return nil, err
	}
	if link := behaviour.Sub(c.Body, "properties.parametersLink"); link != nil {
		document, err := s.follow(c, link)
		if err != nil {
			return nil, err
		}
		s.given = behaviour.Sub(document, "parameters")
	}
	return s, s.readSecrets(c)
}

// checkShape refuses a document that is no template. A template in the request is part of what the request's content has to be.
func (s *source) checkShape() error {
	wrong, ok := errors.AsType[*shape.Error](shape.Check(s.document))
	switch {
	case !ok:
		return nil
	case s.link != nil:
		return behaviour.Gateway(400, "InvalidTemplate", "Deployment template parse failed: '%s'.", wrong.At(""))
	}
	return behaviour.Gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%s'.",
		wrong.At("properties.template"))
}

// readSecrets replaces references to secrets of key vaults by their values.
func (s *source) readSecrets(c *behaviour.Call) error {
	given := behaviour.Object{}
	for name, value := range s.given {
		given[name] = value
		parameter, _ := value.(behaviour.Object)
		reference := behaviour.Sub(parameter, "reference")
		if reference == nil {
			continue
		}
		id, secret := behaviour.RefID(reference, "keyVault"), behaviour.Text(reference, "secretName")
		doc, there := c.Get(id)
		if !there || !id.Is("Microsoft.KeyVault/vaults") {
			return behaviour.Gateway(400, "KeyVaultParameterReferenceNotFound", "The specified KeyVault '%s' could not be found.", id)
		}
		const deploy = "Microsoft.KeyVault/vaults/deploy/action"
		if p := c.Caller.Principal; !c.Allowed(p, deploy, id) {
			application, object := p.IDs()
			return behaviour.Gateway(403, "KeyVaultParameterReferenceAuthorizationFailed",
				"The client '%s' with object id '%s' does not have permission to perform action '%s' on the specified KeyVault "+
					"resource '%s'. Please see https://aka.ms/arm-keyvault for usage details.",
				application, object, strings.ToUpper(deploy), id)
		}
		// The message is quoted in https://github.com/Azure/bicep/issues/6859.
		if behaviour.At(doc, "properties.enabledForTemplateDeployment") != true {
			return behaviour.Gateway(400, "KeyVaultParameterReferenceSecretRetrieveFailed",
				"The secret of KeyVault parameter '%s' cannot be retrieved. Http status code: 'Forbidden'. Error message: 'Access denied "+
					"to first party service.' The property enabledForTemplateDeployment of vault '%s' must be true.", name, id.Name())
		}
		text, there := vault.Secret(c, id, secret)
		if !there {
			return behaviour.Gateway(400, "KeyVaultParameterReferenceSecretRetrieveFailed",
				"The secret of KeyVault parameter '%s' cannot be retrieved: the vault '%s' has no secret '%s'.", name, id.Name(), secret)
		}
		given[name] = behaviour.Object{"value": text}
	}
	s.given = given
	return nil
}

// follow returns the document behind a link.
func (s *source) follow(c *behaviour.Call, link behaviour.Object) (behaviour.Object, error) {
	if id := behaviour.Text(link, "id"); id != "" {
		return ofSpec(c, azure.ID(id), behaviour.Text(link, "relativePath"))
	}
	uri := behaviour.Text(link, "uri")
	if uri == "" {
		return nil, behaviour.Gateway(400, "InvalidTemplate", "Deployment template validation failed: 'the link to a template has no uri "+
			"and no id. A relative path needs a template that is linked itself.'.")
	}
	if query := strings.TrimPrefix(behaviour.Text(link, "queryString"), "?"); query != "" {
		separator := "?"
		if strings.Contains(uri, "?") {
			separator = "&"
		}
		uri += separator + query
	}
	if document, ok := s.linked[uri].(behaviour.Object); ok {
		return document, nil
	}
	document, err := download(c, uri)
	if err == nil {
		s.linked[uri] = document
	}
	return document, err
}

// ofSpec is the template of a version of a template spec, or the one at a path of those that it links to.
func ofSpec(c *behaviour.Call, version azure.ID, path string) (behaviour.Object, error) {
	const kind = "Microsoft.Resources/templateSpecs/versions"
	if !version.Is(kind) {
		return nil, behaviour.Gateway(400, "InvalidTemplate", "Deployment template validation failed: 'the id '%s' of the link to a "+
			"template is none of a version of a template spec.'.", version)
	}
	if err := c.Permit(c.Caller, kind+"/read", version); err != nil {
		return nil, err
	}
	doc, there := c.Get(version)
	if !there {
		return nil, behaviour.ChildNotFound(version)
	}
	templates := []behaviour.Object{{"template": behaviour.At(doc, "properties.mainTemplate")}, {"template": behaviour.At(doc,
		"properties.template")}} // the first version of the API had other names
	if path != "" {
		templates = slices.Concat(behaviour.Objects(doc, "properties.linkedTemplates"), behaviour.Objects(doc, "properties.artifacts"))
		templates = slices.DeleteFunc(templates, func(o behaviour.Object) bool { return behaviour.Text(o, "path") != path })
	}
	for _, o := range templates {
		if document := behaviour.Sub(o, "template"); document != nil {
			return behaviour.Clone(document), nil
		}
	}
	return nil, behaviour.Gateway(400, "InvalidTemplate", "Deployment template validation failed: 'the template spec '%s' has no template "+
		"'%s'.'.", version, path)
}

// followAll gets what the body of a nested deployment links to, for when that deployment runs.
func (s *source) followAll(c *behaviour.Call, body behaviour.Object) error {
	body = s.nestedBody(body)
	for _, name := range []string{"templateLink", "parametersLink"} {
		if link := behaviour.Sub(body, "properties."+name); behaviour.Text(link, "uri") != "" {
			if _, err := s.follow(c, link); err != nil {
				return err
			}
		}
	}
	return nil
}

func download(c *behaviour.Call, uri string) (behaviour.Object, error) {
	err := errors.New("the URI is not known before the deployment runs")
	var text []byte
	if c.Download != nil {
		text, err = c.Download(uri)
	}
	if behaviour.Incomplete(err) {
		return nil, err
	}
	var document behaviour.Object
	if err == nil {
		document, err = lenient.Decode(text)
	}
	if err != nil || document == nil {
		return nil, behaviour.Gateway(400, "InvalidContentLink", "Unable to download deployment content from '%s': %v. Please see "+
			"https://aka.ms/arm-deploy for usage details.", uri, err)
	}
	return document, nil
}

// nestedBody completes the request for a nested deployment with what it links to.
func (s *source) nestedBody(body behaviour.Object) behaviour.Object {
	link := behaviour.Sub(body, "properties.templateLink")
	if path := behaviour.Text(link, "relativePath"); path != "" && behaviour.Text(link, "uri") == "" {
		if uri := behaviour.Text(s.link, "uri"); uri != "" {
			link["uri"] = relative(uri, path)
		} else if id := behaviour.Text(s.link, "id"); id != "" {
			link["id"] = id
		}
	}
	if len(s.linked) > 0 {
		body[linkedField] = s.linked
	}
	return body
}

// relative is the URI of a path beside another URI. The query of that, which may have a signature, stays.
func relative(uri, path string) string {
	base, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	to, err := base.Parse(path)
	if err != nil {
		return ""
	}
	if to.RawQuery == "" {
		to.RawQuery = base.RawQuery
	}
	return to.String()
}
