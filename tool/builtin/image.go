package builtin

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// maxImage is the largest image that models accept: 5 MB in base64.
const maxImage = 5_000_000 / 4 * 3

// imageType is the media type of an image that models can see, recognized by how
// the file begins; "" for anything else.
func imageType(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(start, []byte("GIF87a")), bytes.HasPrefix(start, []byte("GIF89a")):
		return "image/gif"
	case len(start) >= 12 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

type imageBlock struct {
	Type   transcript.BlockType `json:"type"`
	Source imageSource          `json:"source"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type imageTwin struct {
	Type         string `json:"type"`
	OriginalSize int64  `json:"originalSize"`
}

// readImage shows an image. The image itself is only in the content: in the
// structured result it would be stored a second time.
func readImage(shown, media string, file *os.File, info os.FileInfo) tool.Result {
	if info.Size() > maxImage {
		return tool.UseError(fmt.Sprintf("%s is an image of %d bytes; at most %d can be shown. Make a smaller copy of it with a program in Bash (for example: convert FILE -resize 1500x1500 SMALLER), and read that.",
			shown, info.Size(), maxImage))
	}
	data, err := io.ReadAll(io.NewSectionReader(file, 0, maxImage))
	if err != nil {
		return tool.UseError(fmt.Sprintf("Read %s: %v.", shown, err))
	}
	block := imageBlock{transcript.Image, imageSource{"base64", media, base64.StdEncoding.EncodeToString(data)}}
	return tool.Result{
		Blocks:     []transcript.Block{{Type: transcript.Image, Raw: jsonx.MustMarshal(block)}},
		Structured: jsonx.MustMarshal(readTwin{Type: "image", File: imageTwin{media, info.Size()}}),
	}
}
