"""What the generated shop sells: kinds of products with their attributes, options and prices, as data.

Invented for this project. Queries, category paths and option names follow the form of the official catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass

COLORS = ("black", "white", "navy", "red", "green", "grey", "pink", "brown", "purple", "beige")
SIZES = ("small", "medium", "large", "x-large", "xx-large")
SHOE_SIZES = ("6", "7", "8", "9", "10", "11")
FINISHES = ("oak", "walnut", "bronze", "chrome", "ivory", "copper")
PACKS = ("pack of 1", "pack of 2", "pack of 3", "pack of 6", "pack of 12")
LENGTHS = ("3 feet", "6 feet", "10 feet", "15 feet", "25 feet")
SCENTS = ("lavender", "vanilla", "rose", "citrus", "mint", "coconut")
FLAVORS = ("chocolate", "strawberry", "caramel", "lemon", "ginger", "honey")
VOLUMES = ("2 ounce", "4 ounce", "8 ounce", "16 ounce", "32 ounce")
SHAPES = ("round", "square", "oval", "hexagon")
STORAGE = ("32gb", "64gb", "128gb", "256gb", "512gb")

BRANDS = (
    "Lumora", "Vexley", "Harbin", "Nordwell", "Castano", "Pelira", "Quillon", "Ambrel", "Fenwick", "Solvane",
    "Tarmont", "Bexley", "Orvane", "Kestrel", "Miravo", "Dunmore", "Aldora", "Zephra", "Corvid", "Hollin",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of product."""

    query: str
    """The search term under which the official crawler would have found it."""
    head: str
    """How a title names it."""
    path: tuple[str, ...]
    """Category path below the department."""
    adjectives: tuple[str, ...]
    """Attributes that stand before the noun."""
    features: tuple[str, ...]
    """Attributes that follow `with`."""
    purposes: tuple[str, ...]
    """Attributes that follow `for`."""
    options: tuple[tuple[str, tuple[str, ...]], ...]
    price: tuple[int, int]
    """Lowest and highest list price in whole dollars."""


@dataclass(frozen=True)
class Department:
    """A category of the official data, with its place in the category path."""

    category: str
    path: tuple[str, ...]
    kinds: tuple[Kind, ...]


COLOR, TINT, SIZE = ("Color", COLORS[:6]), ("Color", COLORS[4:]), ("Size", SIZES)
SHOE, FINISH = ("Size", SHOE_SIZES), ("Color", FINISHES)
PACK, LENGTH = ("Size", PACKS), ("Size", LENGTHS)
SCENT, FLAVOR = ("Scent", SCENTS), ("Flavor Name", FLAVORS)
VOLUME, SHAPE, MEMORY = ("Size", VOLUMES), ("Shape", SHAPES), ("Size", STORAGE)

FASHION = Department(
    "fashion",
    ("Clothing, Shoes & Jewelry",),
    (
        Kind("women's dresses", "Women's Dress", ("Women", "Clothing", "Dresses"),
             ("sleeveless", "pleated", "machine washable", "stretchy"), ("long sleeve", "v neck", "side pockets"),
             ("evening party", "daily wear", "beach holiday"), (COLOR, SIZE), (18, 90)),
        Kind("men's shorts", "Men's Shorts", ("Men", "Clothing", "Shorts"),
             ("quick drying", "moisture wicking", "slim fit", "stretchy"), ("elastic waist", "zipper pocket"),
             ("gym workout", "daily wear", "hiking"), (COLOR, SIZE), (12, 60)),
        Kind("men's t-shirts & tanks", "Men's T-Shirt", ("Men", "Clothing", "Shirts", "T-Shirts"),
             ("machine washable", "slim fit", "breathable"), ("crew neck", "long sleeve", "chest pocket"),
             ("gym workout", "daily wear"), (COLOR, SIZE), (9, 45)),
        Kind("women's sweaters", "Women's Sweater", ("Women", "Clothing", "Sweaters"),
             ("hand washable", "oversized", "lightweight", "cropped"), ("turtle neck", "long sleeve", "ribbed cuffs"),
             ("winter", "daily wear", "office"), (COLOR, SIZE), (20, 95)),
        Kind("men's loafers & slip-ons", "Men's Loafer", ("Men", "Shoes", "Loafers & Slip-Ons"),
             ("slip resistant", "handmade", "lightweight"), ("rubber sole", "memory foam", "arch support"),
             ("office", "driving", "daily wear"), (COLOR, SHOE), (25, 99)),
        Kind("women's boots", "Women's Ankle Boots", ("Women", "Shoes", "Boots"),
             ("waterproof", "slip resistant", "fleece lined"), ("side zipper", "rubber sole", "block heel"),
             ("winter", "hiking", "office"), (COLOR, SHOE), (28, 99)),
        Kind("women's handbags", "Women's Handbag", ("Women", "Handbags", "Shoulder Bags"),
             ("water resistant", "quilted", "lightweight"), ("gold hardware", "zipper pocket", "crossbody strap"),
             ("travel", "office", "evening party"), (COLOR, SHAPE), (20, 99)),
        Kind("men's jackets", "Men's Jacket", ("Men", "Clothing", "Jackets & Coats"),
             ("waterproof", "insulated", "packable", "slim fit"), ("removable hood", "fleece lining"),
             ("hiking", "winter", "travel"), (COLOR, SIZE), (30, 99)),
    ),
)  # fmt: skip

GARDEN = Department(
    "garden",
    ("Home & Kitchen",),
    (
        Kind("table lamps", "Table Lamp", ("Furniture", "Lighting", "Table Lamps"),
             ("dimmable", "energy efficient", "handmade"), ("usb port", "linen shade", "touch control"),
             ("living room", "bedside", "reading"), (FINISH, SHAPE), (18, 95)),
        Kind("console tables", "Console Table", ("Furniture", "Tables", "Sofa & Console Tables"),
             ("solid wood", "space saving", "easy assemble"), ("storage drawer", "metal legs", "open shelf"),
             ("living room", "entryway", "bedroom"), (FINISH, SHAPE), (40, 99)),
        Kind("decorative pillows", "Throw Pillow Cover", ("Bedding", "Decorative Pillows", "Throw Pillow Covers"),
             ("double sided", "machine washable", "super soft"), ("hidden zipper", "tassel trim", "velvet front"),
             ("living room", "patio", "bedroom"), (TINT, SHAPE), (9, 40)),
        Kind("window coverings", "Blackout Curtain", ("Window Treatments", "Curtains & Drapes", "Panels"),
             ("machine washable", "thermal insulated", "noise reducing"), ("rod pocket", "grommet top", "lace trim"),
             ("living room", "bedroom", "nursery"), (TINT, PACK), (15, 80)),
        Kind("wall art", "Canvas Wall Art", ("Wall Art", "Posters & Prints"),
             ("ready hang", "hand painted", "fade resistant"), ("wood frame", "textured finish"),
             ("living room", "dining room", "office"), (SHAPE, TINT), (16, 90)),
        Kind("area rugs", "Area Rug", ("Rugs", "Area Rugs"),
             ("non slip", "stain resistant", "easy clean", "super soft"), ("rubber backing", "tassel trim"),
             ("living room", "nursery", "dining room"), (TINT, SHAPE), (30, 99)),
        Kind("candles", "Scented Candle", ("Home Fragrance", "Candles"),
             ("long lasting", "hand poured", "lead free"), ("cotton wick", "glass jar", "wooden lid"),
             ("bath", "meditation", "living room"), (SCENT, PACK), (9, 45)),
        Kind("storage ottomans", "Storage Ottoman", ("Furniture", "Ottomans", "Storage"),
             ("space saving", "easy assemble", "heavy duty"), ("flip lid", "metal legs", "button tufting"),
             ("living room", "entryway", "bedroom"), (TINT, SHAPE), (28, 99)),
    ),
)  # fmt: skip

ELECTRONICS = Department(
    "electronics",
    ("Electronics",),
    (
        Kind("hdmi cables", "HDMI Cable", ("Accessories", "Cables", "HDMI Cables"),
             ("gold plated", "high speed", "heavy duty"), ("braided jacket", "ethernet channel", "right angle plug"),
             ("gaming", "home theater"), (LENGTH, COLOR), (8, 50)),
        Kind("bluetooth speakers", "Bluetooth Speaker", ("Audio", "Speakers", "Portable Speakers"),
             ("waterproof", "hands free", "lightweight"), ("stereo sound", "deep bass", "carry strap"),
             ("travel", "home theater", "beach holiday"), (COLOR, SHAPE), (18, 95)),
        Kind("headphones", "Over Ear Headphones", ("Audio", "Headphones", "Over-Ear Headphones"),
             ("noise cancelling", "foldable", "hands free"), ("fast charging", "deep bass", "memory foam"),
             ("gaming", "travel", "office"), (COLOR, LENGTH), (20, 99)),
        Kind("flash drives", "USB Flash Drive", ("Computers", "Data Storage", "USB Flash Drives"),
             ("high speed", "shock proof", "easy carry"), ("key ring", "metal case", "slide cap"),
             ("office", "gaming", "travel"), (MEMORY, COLOR), (8, 70)),
        Kind("projectors", "Mini Projector", ("Video", "Projectors"),
             ("easy carry", "high brightness", "energy efficient"), ("stereo sound", "remote control", "usb port"),
             ("home theater", "gaming", "office"), (COLOR, MEMORY), (45, 99)),
        Kind("phone cases", "Phone Case", ("Cell Phones", "Cases", "Basic Cases"),
             ("shock proof", "wireless charging", "non slip"), ("card holder", "screen protector", "ring stand"),
             ("travel", "hiking"), (COLOR, PACK), (8, 40)),
        Kind("digital cameras", "Digital Camera", ("Camera & Photo", "Digital Cameras", "Compact"),
             ("high resolution", "easy carry", "shock proof"), ("optical zoom", "flip screen", "carry strap"),
             ("travel", "hiking", "beach holiday"), (COLOR, MEMORY), (50, 99)),
        Kind("power banks", "Power Bank", ("Cell Phones", "Chargers", "Portable Power Banks"),
             ("fast charging", "ultra slim", "high capacity"), ("usb port", "carry case", "led display"),
             ("travel", "hiking", "office"), (COLOR, PACK), (15, 80)),
    ),
)  # fmt: skip

BEAUTY = Department(
    "beauty",
    ("Beauty & Personal Care",),
    (
        Kind("toothpaste", "Toothpaste", ("Oral Care", "Toothpaste"),
             ("fluoride free", "teeth whitening", "cruelty free"), ("activated charcoal", "tea tree oil"),
             ("sensitive teeth", "fresh breath", "kids"), (SCENT, PACK), (8, 30)),
        Kind("body lotions", "Body Lotion", ("Skin Care", "Body", "Lotions"),
             ("paraben free", "cruelty free", "fragrance free"), ("hyaluronic acid", "coconut oil", "vitamin e"),
             ("dry skin", "sensitive skin", "kids"), (SCENT, VOLUME), (9, 48)),
        Kind("shampoo", "Shampoo", ("Hair Care", "Shampoo & Conditioner", "Shampoos"),
             ("sulfate free", "paraben free", "cruelty free"), ("argan oil", "tea tree oil", "vitamin e"),
             ("dry hair", "hair growth", "damaged hair"), (SCENT, VOLUME), (9, 48)),
        Kind("lip balms", "Lip Balm", ("Skin Care", "Lip Care", "Lip Balms"),
             ("long lasting", "cruelty free", "fragrance free"), ("shea butter", "coconut oil", "vitamin e"),
             ("dry skin", "winter", "kids"), (SCENT, PACK), (8, 28)),
        Kind("makeup brushes", "Makeup Brush Set", ("Makeup", "Tools & Accessories", "Brush Sets"),
             ("easy clean", "cruelty free", "super soft"), ("synthetic bristles", "travel pouch", "wood handle"),
             ("eye shadow", "travel", "sensitive skin"), (TINT, PACK), (10, 60)),
        Kind("hair extensions", "Clip In Hair Extensions", ("Hair Care", "Extensions & Wigs", "Extensions"),
             ("heat resistant", "double sided", "long lasting"), ("synthetic fiber", "hidden clips"),
             ("evening party", "daily wear", "thin hair"), (TINT, PACK), (14, 85)),
    ),
)  # fmt: skip

GROCERY = Department(
    "grocery",
    ("Grocery & Gourmet Food",),
    (
        Kind("granola bars", "Granola Bars", ("Snack Foods", "Bars", "Granola"),
             ("gluten free", "low sugar", "individually wrapped"), ("whole grain", "dried fruit", "plant protein"),
             ("kids", "hiking", "breakfast"), (FLAVOR, PACK), (8, 45)),
        Kind("coffee", "Ground Coffee", ("Beverages", "Coffee", "Ground"),
             ("fair trade", "usda organic", "low acid"), ("dark roast", "smooth finish", "added collagen"),
             ("cold brew", "office", "breakfast"), (FLAVOR, PACK), (9, 55)),
        Kind("protein powder", "Protein Powder", ("Beverages", "Drink Mixes", "Protein Powders"),
             ("dairy free", "low sugar", "keto friendly", "non gmo"), ("plant protein", "added collagen"),
             ("breakfast", "gym workout"), (FLAVOR, PACK), (18, 85)),
        Kind("trail mix", "Trail Mix", ("Snack Foods", "Nuts & Seeds", "Trail Mixes"),
             ("gluten free", "non gmo", "low sodium"), ("dried fruit", "sea salt", "dark chocolate"),
             ("hiking", "kids", "office"), (FLAVOR, PACK), (8, 48)),
        Kind("herbal tea", "Herbal Tea", ("Beverages", "Tea", "Herbal"),
             ("caffeine free", "usda organic", "individually wrapped"), ("dried fruit", "lemon peel", "cacao nibs"),
             ("meditation", "office", "cold brew"), (FLAVOR, PACK), (8, 38)),
        Kind("cooking sauces", "Cooking Sauce", ("Pantry Staples", "Sauces", "Cooking Sauces"),
             ("gluten free", "low sodium", "dairy free", "non gmo"), ("roasted garlic", "sea salt"),
             ("breakfast", "kids", "slow cooker"), (FLAVOR, PACK), (8, 36)),
    ),
)  # fmt: skip

DEPARTMENTS = (FASHION, GARDEN, ELECTRONICS, BEAUTY, GROCERY)
