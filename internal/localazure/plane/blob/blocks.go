package blob

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
	"kaz/internal/localazure/plane/octets"
)

// mostBlocks is how many blocks a blob has, as Azure documents it.
const mostBlocks = 50_000

// blockID returns the id of the block of a request.
func (c blockCall) blockID() (string, error) {
	const most = 64
	id := c.query.Get("blockid")
	if id == "" {
		return "", refuse(http.StatusBadRequest, "MissingRequiredQueryParameter",
			"A query parameter that's mandatory for this request is not specified: blockid.")
	}
	if decoded, err := base64.StdEncoding.DecodeString(id); err != nil || len(decoded) == 0 || len(decoded) > most {
		return "", account.InvalidParameter("blockid", id, fmt.Sprintf("1 to %d bytes in base64", most))
	}
	return id, nil
}

// stage keeps a block until a list commits it.
func (c blockCall) stage() error {
	id, err := c.blockID()
	if err != nil {
		return err
	}
	content, _, err := copyCall(c).given()
	if err != nil {
		return err
	}
	if len(content) == 0 {
		return account.InvalidHeader("Content-Length", "0", "at least 1")
	}
	s := &c.service.kept
	s.Lock()
	defer s.Unlock()
	if had, there := s.Get(c.key()); there {
		if had.Type != kept.Blocks {
			return wrongType()
		}
		if _, err := c.find(changes); err != nil {
			return err
		}
	}
	if err := s.Stage(c.key(), c.made, id, content); err != nil {
		return err
	}
	c.w.Header().Set("x-ms-request-server-encrypted", "true")
	c.answerSums(content)
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// withBothSums is the first version in which a request with a sum of kind MD5 gets that of kind CRC64, too.
const withBothSums = "2026-10-06"

// answerSums answers with the sums of a block. The request gets that of kind MD5 only if it has one.
func (c blockCall) answerSums(content []byte) {
	asked := cmp.Or(c.r.Header.Get("Content-MD5"), c.r.Header.Get("x-ms-source-content-md5")) != ""
	if asked {
		c.w.Header().Set("Content-MD5", octets.MD5(content))
	}
	if !asked || c.r.Header.Get("x-ms-version") >= withBothSums {
		c.w.Header().Set("x-ms-content-crc64", octets.CRC64(content))
	}
}

// wantedBlock is an element of a list: where to look for the block with an id.
type wantedBlock struct {
	XMLName xml.Name
	ID      string `xml:",chardata"`
}

// wantedBlocks reads the list of a request.
func (c blockCall) wantedBlocks() ([]wantedBlock, error) {
	const most = 8 << 20 // of 50,000 ids with their elements
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if err != nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	if err := octets.Check(c.r.Header, text); err != nil {
		return nil, err
	}
	var list struct {
		XMLName xml.Name      `xml:"BlockList"`
		Blocks  []wantedBlock `xml:",any"`
	}
	if err := xml.Unmarshal(text, &list); err != nil {
		return nil, account.InvalidDocument(err)
	}
	if len(list.Blocks) > mostBlocks {
		return nil, refuse(http.StatusBadRequest, "BlockListTooLong",
			"The block list may not contain more than %d blocks: it has %d.", mostBlocks, len(list.Blocks))
	}
	return list.Blocks, nil
}

// commit makes a blob of blocks that wait, and of blocks that it has.
func (c blockCall) commit() error {
	wanted, err := c.wantedBlocks()
	if err != nil {
		return err
	}
	b := kept.Blob{Facts: kept.Facts{Type: kept.Blocks, Properties: orAny(propertiesOf(c.r.Header, false))}}
	if err := c.furnish(&b); err != nil {
		return err
	}
	s := &c.service.kept
	s.Lock()
	defer s.Unlock()
	had, _ := s.Get(c.key())
	if had.Type == kept.Appended {
		return wrongType()
	}
	waiting, committed := s.Waiting(c.key(), c.made), had.ByBlock()
	for _, w := range wanted {
		content, found := waiting[w.ID]
		found = found && w.XMLName.Local != "Committed"
		if !found && w.XMLName.Local != "Uncommitted" {
			content, found = committed[w.ID]
		}
		if !found {
			return refuse(http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid: there is no block %q as %s.",
				w.ID, w.XMLName.Local)
		}
		b.Content = append(b.Content, content...)
		b.Blocks = append(b.Blocks, kept.Block{ID: w.ID, Size: len(content)})
	}
	return c.replace(b, http.StatusCreated)
}

// blockLists is the answer to a request for the blocks of a blob.
type blockLists struct {
	XMLName     xml.Name     `xml:"BlockList"`
	Committed   []kept.Block `xml:"CommittedBlocks>Block"`
	Uncommitted []kept.Block `xml:"UncommittedBlocks>Block"`
}

// blocks answers with the blocks of a blob: those that a list has committed, those that wait, or both.
func (c blockCall) blocks() error {
	kind := strings.ToLower(c.query.Get("blocklisttype"))
	if kind == "" {
		kind = "committed"
	}
	if !slices.Contains([]string{"committed", "uncommitted", "all"}, kind) {
		return account.InvalidParameter("blocklisttype", kind, "committed, uncommitted or all")
	}
	s := &c.service.kept
	s.Lock()
	defer s.Unlock()
	waiting := s.Waiting(c.key(), c.made)
	b, there := s.Get(c.key())
	if there || len(waiting) == 0 {
		_, err := c.find(reads)
		if err == nil && b.Type != kept.Blocks {
			err = wrongType()
		}
		if err != nil {
			return err
		}
		stamp(c.w, b)
	}
	c.w.Header().Set("x-ms-blob-content-length", formatInt(len(b.Content)))
	list := blockLists{Committed: b.Blocks}
	for id, content := range waiting {
		list.Uncommitted = append(list.Uncommitted, kept.Block{ID: id, Size: len(content)})
	}
	slices.SortFunc(list.Uncommitted, func(a, b kept.Block) int { return strings.Compare(a.ID, b.ID) })
	if kind == "committed" {
		list.Uncommitted = nil
	}
	if kind == "uncommitted" {
		list.Committed = nil
	}
	account.Reply(c.w, http.StatusOK, list)
	return nil
}
