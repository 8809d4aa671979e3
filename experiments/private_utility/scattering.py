"""The wavelet scattering transform of small grey images, for learning on features that need no data.

Moduli of complex wavelet coefficients, taken twice and averaged, are stable to small deformations, and
nothing in them is learned: the transform is public, and each record's features depend on that record
alone. A private learner pays for the classifier only.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["Scattering", "group_normalised"]


@dataclass(frozen=True, kw_only=True)
class Scattering:
    r"""Scattering coefficients of order 0, 1 and 2 of square grey images.

    With Morlet wavelets :math:`\psi_\lambda`, :math:`\lambda = (j, \theta)`, at scales :math:`2^j`,
    :math:`0 \le j < J`, and :math:`L` angles :math:`\theta` in :math:`[0, \pi)`, and a Gaussian window
    :math:`\phi_J` of width :math:`2^J` (Eq. 8 of [1]_):

    .. math::
        S_0 x &= x \star \phi_J, \\
        S_1 x(\lambda_1) &= |x \star \psi_{\lambda_1}| \star \phi_J, \\
        S_2 x(\lambda_1, \lambda_2) &=
            ||x \star \psi_{\lambda_1}| \star \psi_{\lambda_2}| \star \phi_J, \quad j_1 < j_2,

    each sampled once per :math:`2^J \times 2^J` pixels. Paths with :math:`j_2 \le j_1` carry next to no energy and
    are left out. That makes :math:`1 + JL + L^2 J (J - 1) / 2` channels: 81 of 7 by 7 for images of
    28 by 28. Tramèr and Boneh [3]_ learn privately on them.

    The wavelet of scale 0 has centre frequency :math:`3\pi/4`, an envelope of 0.8 pixels along its
    wave and of :math:`0.8 L/4` across, as is usual [1]_ [2]_; a multiple of the envelope is
    subtracted, so that its mean is zero.

    Parameters
    ----------
    side : int
        Pixels along each side, a multiple of ``2**scales``.
    scales : int
        :math:`J`, at least 1.
    angles : int
        :math:`L`, at least 1.

    References
    ----------
    .. [1] Bruna and Mallat, "Invariant scattering convolution networks", IEEE TPAMI 35(8), 2013,
       arXiv:1203.1513.
    .. [2] Oyallon and Mallat, "Deep roto-translation scattering for object classification", CVPR
       2015, arXiv:1412.8659.
    .. [3] Tramèr and Boneh, "Differentially private learning needs better features (or much more
       data)", ICLR 2021, arXiv:2011.11660.

    Examples
    --------
    >>> Scattering(side=28).transform(np.zeros((2, 28, 28), np.uint8)).shape
    torch.Size([2, 81, 7, 7])
    """

    side: int
    scales: int = 2
    angles: int = 8

    def __post_init__(self) -> None:
        if self.scales < 1 or self.angles < 1:
            raise ValueError(
                f"there are {self.scales} scales and {self.angles} angles, but a wavelet needs one of each."
            )
        if self.side < 1 or self.side % self.window:
            raise ValueError(
                f"the side is {self.side} pixels, but windows of {self.window} must fill it; pad the images."
            )

    @property
    def window(self) -> int:
        """Pixels along each side of what one coefficient sees."""
        return int(2**self.scales)

    @property
    def channels(self) -> int:
        """Number of paths of order 0, 1 and 2."""
        pairs = self.scales * (self.scales - 1) // 2
        return 1 + self.scales * self.angles + pairs * self.angles**2

    def transform(self, images: np.ndarray, *, batch: int = 100) -> Tensor:
        """Return the coefficients of images, shape (records, channels, windows, windows).

        Parameters
        ----------
        images : ndarray of uint8
            Shape (records, side, side), black 0 and white 255.
        batch : int
            Images at a time; few enough stay in the processor's cache.
        """
        if images.dtype != np.uint8 or images.shape[1:] != (self.side, self.side):
            raise ValueError(
                f"the images are {images.dtype} of shape {images.shape[1:]}, but bytes of {self.side} by {self.side} are read."
            )
        windows = self.side // self.window
        made = torch.empty(len(images), self.channels, windows, windows)
        filters = [
            [self._wavelets(j, r) for j in range(self.scales)]
            for r in range(self.scales)
        ]
        pools = [self._pool(r) for r in range(self.scales)]
        for start in range(0, len(images), batch):
            part = torch.from_numpy(images[start : start + batch]).float() / 255
            made[start : start + batch] = self._of_batch(part, filters, pools)
        return made

    def _of_batch(
        self, x: Tensor, filters: list[list[Tensor]], pools: list[Tensor]
    ) -> Tensor:
        # The mirror image at the border: no edge is seen where the picture merely ends.
        x = torch.nn.functional.pad(x[:, None], (self.window,) * 4, mode="reflect")
        spectrum = torch.fft.fft2(x)
        first, second = [], []
        for j in range(self.scales):
            # One sample per 2^j pixels holds all that a wavelet of scale j lets through, nearly.
            u = torch.fft.ifft2(folded(spectrum * filters[0][j], j)).abs()
            first.append(pooled(u, pools[j]))
            if j + 1 == self.scales:
                continue
            spectra = torch.fft.fft2(u)[:, :, None]
            for k in range(j + 1, self.scales):
                v = torch.fft.ifft2(folded(spectra * filters[j][k], k - j)).abs()
                second.append(pooled(v.flatten(1, 2), pools[k]))
        return torch.cat([pooled(x, pools[0]), *first, *second], dim=1)

    @property
    def _padded(self) -> int:
        return self.side + 2 * self.window

    def _wavelets(self, j: int, resolution: int) -> Tensor:
        """Return the Fourier transforms of the wavelets of scale j, shape (angles, n, n).

        They are real. The grid has one sample per ``2**resolution`` pixels.
        """
        n = self._padded >> resolution
        step = 2.0**resolution
        omega = 2 * math.pi * np.fft.fftfreq(n) / step
        width, centre, slant = 0.8 * 2**j, 0.75 * math.pi / 2**j, 4 / self.angles
        made = np.zeros((self.angles, n, n))
        for a in range(self.angles):
            angle = math.pi * a / self.angles
            gabor, envelope = np.zeros((n, n)), np.zeros((n, n))
            # What is sampled in space is periodic in frequency: all copies that matter are added.
            for wrap_y in range(-2, 3):
                for wrap_x in range(-2, 3):
                    y = (omega + wrap_y * 2 * math.pi / step)[:, None]
                    x = (omega + wrap_x * 2 * math.pi / step)[None, :]
                    along = math.cos(angle) * x + math.sin(angle) * y
                    across = (math.cos(angle) * y - math.sin(angle) * x) / slant
                    gabor += np.exp(
                        -(width**2) / 2 * ((along - centre) ** 2 + across**2)
                    )
                    envelope += np.exp(-(width**2) / 2 * (along**2 + across**2))
            made[a] = gabor - gabor[0, 0] / envelope[0, 0] * envelope
        return torch.from_numpy(made.astype(np.float32))

    def _pool(self, resolution: int) -> Tensor:
        """Return the matrix that averages and samples along one side, shape (windows, n).

        The window is Gaussian, hence a product of one factor per side. It is sampled at the middle of
        each window, which need not be a pixel: a mirrored image has mirrored coefficients.
        """
        middles = self.window * (1.5 + np.arange(self.side // self.window)) - 0.5
        at = np.arange(self._padded >> resolution) * 2.0**resolution
        width = 0.8 * 2 ** (self.scales - 1)
        weights = np.exp(-((middles[:, None] - at) ** 2) / (2 * width**2))
        weights /= weights.sum(axis=1, keepdims=True)
        return torch.from_numpy(weights.astype(np.float32))


def folded(spectrum: Tensor, halvings: int) -> Tensor:
    """Return the spectrum of every second sample along each side, so many times over.

    Examples
    --------
    >>> x = torch.arange(16.0).reshape(4, 4) ** 2
    >>> bool(torch.allclose(torch.fft.ifft2(folded(torch.fft.fft2(x), 1)).real, x[::2, ::2]))
    True
    """
    for _ in range(halvings):
        half = spectrum.shape[-1] // 2
        rows = spectrum[..., :half, :] + spectrum[..., half:, :]
        spectrum = (rows[..., :half] + rows[..., half:]) / 4
    return spectrum


def pooled(x: Tensor, matrix: Tensor) -> Tensor:
    """Return the average over each window of each channel."""
    return matrix @ x @ matrix.T


def group_normalised(
    coefficients: Tensor, groups: int, *, floor: float = 1e-5
) -> Tensor:
    """Return features with mean 0 and variance 1 within each group of channels of each record.

    Group normalisation without learned scales (Wu and He, arXiv:1803.08494), as in Tramèr and Boneh: the
    mean and variance are the record's own, so that no other record is seen and nothing is to be
    accounted for.

    Parameters
    ----------
    coefficients : Tensor
        Shape (records, channels, windows, windows).
    groups : int
        Groups of neighbouring channels; divides their number.
    floor : float
        Added to the variance: an empty group stays near 0.

    Returns
    -------
    Tensor
        Shape (records, channels * windows * windows).
    """
    return torch.nn.functional.group_norm(coefficients, groups, eps=floor).flatten(1)
