"""What stands around the networks of a text reader: boxes around the text, letters from the recognizer.

The networks are given as functions of arrays, so that every runtime reads the same picture in the same way.
"""

import numpy as np


def resized(picture, height, width):
    """Bilinear, between the centres of pixels."""
    def places(size, wanted):
        at = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0, size - 1)
        low = np.minimum(at.astype(np.int64), max(size - 2, 0))
        return low, np.minimum(low + 1, size - 1), at - low

    top, bottom, y = places(picture.shape[0], height)
    left, right, x = places(picture.shape[1], width)
    rows = picture[top] * (1 - y)[:, None] + picture[bottom] * y[:, None]
    return rows[:, left] * (1 - x) + rows[:, right] * x


def text_rows(probability):
    """Boxes (top, bottom, left, right) around what is text, from the top; lines of print do not overlap."""
    text = probability > 0.3
    boxes, spans = [], np.flatnonzero(np.diff(np.concatenate([[0], text.any(axis=1), [0]])))
    for top, bottom in spans.reshape(-1, 2):
        columns = np.flatnonzero(text[top:bottom].any(axis=0))
        if bottom - top >= 4 and len(columns) >= 8:
            boxes.append((top, bottom, columns[0], columns[-1] + 1))
    return boxes


def detection_input(picture, scale):
    height, width = (int(np.ceil(size * scale / 32)) * 32 for size in picture.shape)
    grey = resized(picture / 255.0, height, width)
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return ((grey[None] - mean[:, None, None]) / deviation[:, None, None])[None].astype(np.float32)


def recognition_input(crop):
    width = max(int(round(crop.shape[1] * 48 / crop.shape[0])), 16)
    grey = (resized(crop / 255.0, 48, width) - 0.5) / 0.5
    return np.repeat(grey[None, None], 3, axis=1).astype(np.float32)


def letters(scores, keys):
    """The likeliest class of each step; repeated ones and blanks (class 0) fall away."""
    best = scores.argmax(axis=-1)
    kept = [b for i, b in enumerate(best) if b != 0 and (i == 0 or b != best[i - 1])]
    return "".join(keys[b - 1] if b <= len(keys) else " " for b in kept)


def read_page(picture, detect, recognize, keys, scale=2):
    """The lines of print of a grey picture. detect and recognize are the networks: array -> array."""
    data = detection_input(picture, scale)
    probability = detect(data)[0, 0]
    ratio_y, ratio_x = (p / s for p, s in zip(picture.shape, probability.shape))
    lines = []
    for top, bottom, left, right in text_rows(probability):
        # The detector learned shrunken boxes.
        grow = 0.6 * (bottom - top)
        y0, y1 = max((top - grow) * ratio_y, 0), (bottom + grow) * ratio_y
        x0, x1 = max((left - grow) * ratio_x, 0), (right + grow) * ratio_x
        crop = picture[int(y0):int(np.ceil(y1)), int(x0):int(np.ceil(x1))]
        lines.append(letters(recognize(recognition_input(crop))[0], keys))
    return lines
